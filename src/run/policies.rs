//! Reads, applies and deletes the objects of `deploy/` in the cluster, and checks what the policies refuse.

use std::time::Duration;

use http::Method;
use maintenance_lease::{Accept, ApiError, Call, NAMESPACE, Requests, escape};
use policies::{FIELD_MANAGER, Manifest, Mode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::error::{Failure, PolicyRefusal};
use crate::findings::Enforcement;
use crate::run::session::Session;
use crate::words::policies::Applied;

/// The other API servers notice a deleted binding within a second or two.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(30);
const EFFECT_POLL: Duration = Duration::from_millis(200);

/// Some of the objects, with what the cluster has of them.
pub(crate) struct Installed<'a> {
    requests: &'a Requests,
    pub(crate) objects: Vec<(Manifest, Option<Value>)>,
    /// Whether the objects were read. If not, none of them is known.
    pub(crate) is_read: bool,
}

impl<'a> Installed<'a> {
    /// Reads the `wanted` objects.
    ///
    /// # Errors
    /// If one can't be read.
    pub(crate) async fn read(
        session: &'a Session<'_>,
        wanted: impl Fn(&Manifest) -> bool,
    ) -> Result<Self, Failure> {
        let requests = session.locks.requests();
        let mut objects = Vec::new();
        for manifest in policies::manifests().into_iter().filter(wanted) {
            let found = object(requests, manifest.path()).await?;
            objects.push((manifest, found));
        }
        let is_read = true;
        Ok(Self {
            requests,
            objects,
            is_read,
        })
    }

    /// The `wanted` objects, without a look at the cluster.
    pub(crate) fn unread(session: &'a Session<'_>, wanted: impl Fn(&Manifest) -> bool) -> Self {
        let all = policies::manifests().into_iter().filter(wanted);
        Self {
            requests: session.locks.requests(),
            objects: all.map(|manifest| (manifest, None)).collect(),
            is_read: false,
        }
    }

    /// The bindings among the objects.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = &(Manifest, Option<Value>)> {
        self.objects
            .iter()
            .filter(|(manifest, _)| manifest.is_binding())
    }

    /// Refuses to change what another tool manages: the two would undo each other's changes.
    ///
    /// # Errors
    /// If there is such an object.
    pub(crate) fn must_be_ours(&self) -> Result<(), Failure> {
        for (manifest, found) in &self.objects {
            let manager = found
                .as_ref()
                .and_then(|found| manifest.other_manager(found));
            if let Some(manager) = manager {
                let (object, manager) = (manifest.full_name(), manager.to_owned());
                return Err(PolicyRefusal::OtherManager { object, manager }.into());
            }
        }
        Ok(())
    }

    /// What the cluster has of the object.
    pub(crate) fn found(&self, wanted: impl Fn(&Manifest) -> bool) -> Option<&Value> {
        let mut objects = self.objects.iter();
        let (_, found) = objects.find(|(manifest, _)| wanted(manifest))?;
        found.as_ref()
    }

    /// What the policy with this binding does now.
    pub(crate) fn enforcement(&self, binding: &Manifest) -> Enforcement {
        let same = |other: &Manifest| other.name() == binding.name();
        let policy = self.found(|other| other.is_policy() && same(other));
        let binding = self.found(|other| other.is_binding() && same(other));
        match (policy, binding) {
            (None, _) => Enforcement::NotInstalled,
            (Some(_), None) => Enforcement::Off,
            (Some(_), Some(binding)) => Enforcement::On(Mode::of(binding)),
        }
    }

    /// Applies an object of which the cluster has `found`. Another manager's fields are not taken.
    ///
    /// # Errors
    /// If the server refuses it.
    pub(crate) async fn apply(
        &self,
        manifest: &Manifest,
        found: Option<&Value>,
    ) -> Result<Applied, Failure> {
        let call = Call {
            method: Method::PATCH,
            path: format!("{}?fieldManager={FIELD_MANAGER}", manifest.path()),
            accept: Accept::Json,
            body: Some((
                "application/apply-patch+yaml",
                manifest.object().to_string().into_bytes(),
            )),
        };
        let applied = match self.requests.call(&call).await {
            Ok(body) => read(&body)?,
            Err(error) if error.is_conflict() => {
                let object = manifest.full_name();
                return Err(PolicyRefusal::Conflict { object, error }.into());
            }
            Err(error) => return Err(error.into()),
        };
        // Without what only says who wrote it.
        let content = |object: &Value| {
            let mut object = object.clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.retain(|key, _| !["managedFields", "resourceVersion"].contains(&&**key));
            }
            object
        };
        Ok(match found {
            None => Applied::Created,
            Some(found) if content(found) == content(&applied) => Applied::Unchanged,
            Some(_) => Applied::Configured,
        })
    }

    /// Sets the mode of a policy, even if another tool manages its binding; `None` switches it off. If the answer is
    /// lost, reads whether the change was made.
    ///
    /// # Errors
    /// If the server refuses, or if it is unknown whether the change was made.
    pub(crate) async fn set_mode(
        &self,
        binding: &Manifest,
        mode: Option<Mode>,
    ) -> Result<(), Failure> {
        let exists = matches!(self.enforcement(binding), Enforcement::On(_));
        let written = match mode {
            None => self.delete(binding).await.map(drop),
            Some(mode) if exists => {
                let patch = json!({"spec": {"validationActions": mode.actions()}});
                let call = Call {
                    method: Method::PATCH,
                    path: format!("{}?fieldManager={FIELD_MANAGER}", binding.path()),
                    accept: Accept::Json,
                    body: Some((
                        "application/merge-patch+json",
                        patch.to_string().into_bytes(),
                    )),
                };
                self.requests
                    .call(&call)
                    .await
                    .map(drop)
                    .map_err(Failure::from)
            }
            Some(mode) => {
                let binding = binding.clone().with_actions(mode.actions());
                self.apply(&binding, None).await.map(drop)
            }
        };
        let Err(failure) = written else { return Ok(()) };
        if !failure.api().is_some_and(ApiError::leaves_writes_unknown) {
            return Err(failure);
        }
        let now = object(self.requests, binding.path()).await;
        let is_done = now.is_ok_and(|now| now.as_ref().map(Mode::of) == mode);
        match (is_done, failure) {
            (true, _) => Ok(()),
            (false, Failure::Lock(maintenance_lease::Error::Api(error))) => {
                let policy = binding.name().to_owned();
                Err(PolicyRefusal::Unknown { policy, error }.into())
            }
            (false, failure) => Err(failure),
        }
    }

    /// Deletes an object, if it is there. Returns whether it was.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn delete(&self, manifest: &Manifest) -> Result<bool, Failure> {
        self.send_delete(manifest.path()).await
    }

    /// Lets the server check whether every object could be deleted.
    ///
    /// # Errors
    /// If one could not.
    pub(crate) async fn may_delete(&self) -> Result<(), Failure> {
        for (manifest, _) in &self.objects {
            self.send_delete(format!("{}?dryRun=All", manifest.path()))
                .await?;
        }
        Ok(())
    }

    async fn send_delete(&self, path: String) -> Result<bool, Failure> {
        let call = Call {
            method: Method::DELETE,
            path,
            accept: Accept::Json,
            body: None,
        };
        match self.requests.call(&call).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until both policies refuse a dry run that breaks a rule, or until they admit it. The API server follows a new
    /// binding within about a second. Returns why the node policy could not be checked, if there is a Node to try.
    ///
    /// # Errors
    /// If that is not so after half a minute, or if the dry run of a Lease fails for another reason.
    pub(crate) async fn until_enforced(&self, wanted: bool) -> Result<Option<ApiError>, Failure> {
        let end = Instant::now() + EFFECT_TIMEOUT;
        self.until(&wrong_time(), wanted, end).await?;
        let node = match any_node(self.requests).await {
            Ok(Some(node)) => node,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        };
        match self.until(&held_without_lock(&node), wanted, end).await {
            Ok(()) => Ok(None),
            Err(PolicyRefusal::Unchecked { error, .. }) => Ok(Some(error)),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Sends `dry_run` until a policy of ours refuses it, or until it is admitted.
    ///
    /// # Errors
    /// If that is not so at `end`, or if it fails for another reason.
    async fn until(&self, dry_run: &Call, wanted: bool, end: Instant) -> Result<(), PolicyRefusal> {
        loop {
            let refusal = match self.requests.call(dry_run).await {
                Ok(_) if !wanted => return Ok(()),
                Ok(_) => PolicyRefusal::NotEnforced,
                Err(error) if error.policy_code().is_some() && wanted => return Ok(()),
                Err(error) if error.policy_code().is_some() => PolicyRefusal::StillEnforced(error),
                Err(error) if error.may_pass() => PolicyRefusal::Unchecked { wanted, error },
                Err(error) => return Err(PolicyRefusal::Unchecked { wanted, error }),
            };
            if Instant::now() >= end {
                return Err(refusal);
            }
            sleep(EFFECT_POLL).await;
        }
    }
}

/// Whether a policy of ours refuses `dry_run`; `None` if it fails for another reason.
pub(crate) async fn refuses(requests: &Requests, dry_run: &Call) -> Option<bool> {
    match requests.call(dry_run).await {
        Err(error) if error.policy_code().is_some() => Some(true),
        Ok(_) => Some(false),
        Err(_) => None,
    }
}

/// Any Node, for [`held_without_lock`]; `None`: there is none.
///
/// # Errors
/// If Nodes can't be listed.
pub(crate) async fn any_node(requests: &Requests) -> Result<Option<String>, ApiError> {
    let path = "/api/v1/nodes?limit=1".to_owned();
    let body = requests.call(&Call::get(path, Accept::Json)).await?;
    let nodes: Value =
        serde_json::from_slice(&body).map_err(|error| ApiError::Unreadable(error.to_string()))?;
    let name = nodes["items"][0]["metadata"]["name"].as_str();
    Ok(name.map(ToOwned::to_owned))
}

/// The object at `path`; `None` if the server says that there is none.
///
/// # Errors
/// If it can't be read, or if the server has no such API.
pub(crate) async fn object(requests: &Requests, path: String) -> Result<Option<Value>, Failure> {
    match requests.call(&Call::get(path, Accept::Json)).await {
        Ok(body) => read(&body).map(Some),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) if error.is_not_installed() => Err(PolicyRefusal::NoAdmission.into()),
        Err(error) => Err(error.into()),
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

/// A dry run that breaks a rule of the node policy, also on a Node on hold: it adds the held label without a lock id.
pub(crate) fn held_without_lock(node: &str) -> Call {
    let patch = json!({"metadata": {
        "labels": {"kubectl-maint.dev/held": "policy-check"},
        "annotations": {"kubectl-maint.dev/held-lock-id": null},
    }});
    Call {
        method: Method::PATCH,
        path: format!(
            "/api/v1/nodes/{}?dryRun=All&fieldManager={FIELD_MANAGER}",
            escape(node)
        ),
        accept: Accept::Json,
        body: Some((
            "application/merge-patch+json",
            patch.to_string().into_bytes(),
        )),
    }
}

/// An object that the server sent.
///
/// # Errors
/// If it is not JSON.
pub(crate) fn read(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| ApiError::Unreadable(error.to_string()).into())
}
