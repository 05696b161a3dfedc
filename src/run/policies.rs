//! Reads, applies and deletes the objects of `deploy/` in the cluster.

use std::time::Duration;

use http::Method;
use maintenance_lease::{Accept, ApiError, Call, NAMESPACE, Requests};
use policies::{FIELD_MANAGER, Manifest};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::error::{Failure, PolicyRefusal};
use crate::run::session::Session;

/// The other API servers notice a deleted binding within a second or two.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(30);
const EFFECT_POLL: Duration = Duration::from_millis(200);

/// Some of the objects, with what the cluster has of them.
pub(crate) struct Installed<'a> {
    requests: &'a Requests,
    pub(crate) objects: Vec<(Manifest, Option<Value>)>,
}

impl<'a> Installed<'a> {
    /// Reads the `wanted` objects.
    ///
    /// # Errors
    /// If one can't be read, or if another tool manages one: the two would undo each
    /// other's changes.
    pub(crate) async fn read(
        session: &'a Session<'_>,
        wanted: impl Fn(&Manifest) -> bool,
    ) -> Result<Self, Failure> {
        let requests = session.locks.requests();
        let mut objects = Vec::new();
        for manifest in policies::manifests().into_iter().filter(wanted) {
            let call = Call::get(manifest.path(), Accept::Json);
            let found = match requests.call(&call).await {
                Ok(body) => Some(read(&body)?),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error.into()),
            };
            if let Some(found) = &found
                && let Some(manager) = other_manager(&manifest, found)
            {
                let (object, manager) = (manifest.full_name(), manager.to_owned());
                return Err(PolicyRefusal::OtherManager { object, manager }.into());
            }
            objects.push((manifest, found));
        }
        Ok(Self { requests, objects })
    }

    /// What the cluster has of the object at `path`.
    pub(crate) fn found(&self, wanted: impl Fn(&Manifest) -> bool) -> Option<&Value> {
        let mut objects = self.objects.iter();
        let (_, found) = objects.find(|(manifest, _)| wanted(manifest))?;
        found.as_ref()
    }

    /// Applies an object. Another manager's fields are not taken.
    ///
    /// # Errors
    /// If the server refuses it.
    pub(crate) async fn apply(&self, manifest: &Manifest) -> Result<(), Failure> {
        let call = Call {
            method: Method::PATCH,
            path: format!("{}?fieldManager={FIELD_MANAGER}", manifest.path()),
            accept: Accept::Json,
            body: Some((
                "application/apply-patch+yaml",
                manifest.object().to_string().into_bytes(),
            )),
        };
        match self.requests.call(&call).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() => Err(PolicyRefusal::Conflict {
                object: manifest.full_name(),
                error,
            }
            .into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes an object, if it is there. Returns whether it was.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn delete(&self, manifest: &Manifest) -> Result<bool, Failure> {
        let call = Call {
            method: Method::DELETE,
            path: manifest.path(),
            accept: Accept::Json,
            body: None,
        };
        match self.requests.call(&call).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the policies refuse nothing: until the server admits, in a dry run, a Lease whose time is
    /// wrong.
    ///
    /// # Errors
    /// If it still refuses it after half a minute.
    pub(crate) async fn until_off(&self) -> Result<(), Failure> {
        let end = Instant::now() + EFFECT_TIMEOUT;
        while let Err(error) = self.requests.call(&wrong_time()).await {
            if error.policy_code().is_none() {
                break;
            }
            if Instant::now() > end {
                return Err(PolicyRefusal::StillEnforced(error).into());
            }
            sleep(EFFECT_POLL).await;
        }
        Ok(())
    }
}

/// A dry run that breaks a rule of the lease policy and no other.
pub(crate) fn wrong_time() -> Call {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"generateName": "policy-check-", "namespace": NAMESPACE},
        "spec": {"renewTime": "2000-01-01T00:00:00.000000Z"},
    });
    Call {
        method: Method::POST,
        path: format!(
            "/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases?dryRun=All&fieldManager={FIELD_MANAGER}"
        ),
        accept: Accept::Json,
        body: Some(("application/json", lease.to_string().into_bytes())),
    }
}

/// An object that the server sent.
///
/// # Errors
/// If it is not JSON.
pub(crate) fn read(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| ApiError::Unreadable(error.to_string()).into())
}

/// Who else manages the object. The namespace is left out: the first lock may have created it, and it has
/// no fields to disagree about.
fn other_manager<'f>(manifest: &Manifest, found: &'f Value) -> Option<&'f str> {
    if manifest.is_namespace() {
        return None;
    }
    let entries = found["metadata"]["managedFields"].as_array()?;
    let others = entries
        .iter()
        // Kubernetes' own controllers write the status.
        .filter(|entry| entry["subresource"] != "status")
        .filter_map(|entry| entry["manager"].as_str());
    others.into_iter().find(|manager| *manager != FIELD_MANAGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_writes_more_than_the_status_manages_it() {
        let policy = policies::manifests()
            .into_iter()
            .find(Manifest::is_policy)
            .expect("a policy");
        let manager = |entries: Value| {
            let found = json!({"metadata": {"managedFields": entries}});
            other_manager(&policy, &found).map(ToOwned::to_owned)
        };
        let ours = json!({"manager": FIELD_MANAGER, "operation": "Apply"});
        let status = json!({"manager": "kube-controller-manager", "subresource": "status"});
        assert_eq!(manager(json!([ours, status])), None);
        let argo = json!({"manager": "argocd-controller", "operation": "Apply"});
        assert_eq!(
            manager(json!([ours, argo])),
            Some("argocd-controller".to_owned())
        );
    }
}
