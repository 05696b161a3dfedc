//! What the cluster has of the objects, and how it is changed.

use std::time::Duration;

use http::Method;
use maintenance_lease::{Accept, ApiError, Call, Requests};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::dry_runs::{any_node, held_without_lock, wrong_time};
use crate::error::{Error, Refusal};
use crate::{FIELD_MANAGER, Manifest, Mode, manifests};

/// What a policy does with writes that break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// It is not installed.
    NotInstalled,
    /// It has no binding.
    Off,
    /// What its binding says.
    On(Mode),
}

impl Enforcement {
    /// The mode, as typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotInstalled => "not installed",
            Self::Off => "off",
            Self::On(mode) => mode.name(),
        }
    }
}

/// What happened to an object that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was not there.
    Created,
    /// It was changed.
    Configured,
    /// It was like that already.
    Unchanged,
}

impl Applied {
    /// kubectl's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

/// The other API servers notice a deleted binding within a second or two.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(30);
const EFFECT_POLL: Duration = Duration::from_millis(200);

/// Some of the objects, with what the cluster has of them.
pub struct Installed<'a> {
    requests: &'a Requests,
    /// Those that were asked for.
    pub objects: Vec<(Manifest, Option<Value>)>,
    /// Whether the objects were read. If not, none of them is known.
    pub is_read: bool,
}

impl<'a> Installed<'a> {
    /// Reads the `wanted` objects.
    ///
    /// # Errors
    /// If one can't be read.
    pub async fn read(
        requests: &'a Requests,
        wanted: impl Fn(&Manifest) -> bool,
    ) -> Result<Self, Error> {
        let mut objects = Vec::new();
        for manifest in manifests().into_iter().filter(wanted) {
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
    pub fn unread(requests: &'a Requests, wanted: impl Fn(&Manifest) -> bool) -> Self {
        let all = manifests().into_iter().filter(wanted);
        Self {
            requests,
            objects: all.map(|manifest| (manifest, None)).collect(),
            is_read: false,
        }
    }

    /// The objects in the order in which they are applied: the bindings before the policies. Without its policy, a binding
    /// has no effect. So a policy without its binding was switched off, even if an installation was interrupted.
    pub fn in_order(&self) -> impl Iterator<Item = &(Manifest, Option<Value>)> {
        let part = |wanted: fn(&Manifest) -> bool| {
            let objects = self.objects.iter();
            objects.filter(move |(manifest, _)| wanted(manifest))
        };
        part(|it| !it.is_binding() && !it.is_policy())
            .chain(part(Manifest::is_binding))
            .chain(part(Manifest::is_policy))
    }

    /// The bindings among the objects.
    pub fn bindings(&self) -> impl Iterator<Item = &(Manifest, Option<Value>)> {
        self.objects
            .iter()
            .filter(|(manifest, _)| manifest.is_binding())
    }

    /// Refuses to change what another tool manages: the two would undo each other's changes.
    ///
    /// # Errors
    /// If there is such an object.
    pub fn must_be_ours(&self) -> Result<(), Error> {
        for (manifest, found) in &self.objects {
            let manager = found
                .as_ref()
                .and_then(|found| manifest.other_manager(found));
            if let Some(manager) = manager {
                let (object, manager) = (manifest.full_name(), manager.to_owned());
                return Err(Refusal::OtherManager { object, manager }.into());
            }
        }
        Ok(())
    }

    /// Refuses objects with fields that somebody added and that may restrict the policies: they would stay.
    ///
    /// # Errors
    /// If there is such an object.
    pub fn must_be_unrestricted(&self) -> Result<(), Error> {
        for (manifest, found) in &self.objects {
            let field = found.as_ref().and_then(|it| manifest.added_field(it));
            if let Some(field) = field {
                let object = manifest.full_name();
                return Err(Refusal::Added { object, field }.into());
            }
        }
        Ok(())
    }

    /// What the cluster has of the object.
    pub fn found(&self, wanted: impl Fn(&Manifest) -> bool) -> Option<&Value> {
        let mut objects = self.objects.iter();
        let (_, found) = objects.find(|(manifest, _)| wanted(manifest))?;
        found.as_ref()
    }

    /// What the policy with this binding does now.
    pub fn enforcement(&self, binding: &Manifest) -> Enforcement {
        let same = |other: &Manifest| other.name() == binding.name();
        let policy = self.found(|other| other.is_policy() && same(other));
        let binding = self.found(|other| other.is_binding() && same(other));
        match (policy, binding) {
            (None, _) => Enforcement::NotInstalled,
            (Some(_), None) => Enforcement::Off,
            (Some(_), Some(binding)) => Enforcement::On(Mode::of(binding)),
        }
    }

    /// What to apply for `manifest`, if the cluster has `found`. A binding keeps its mode. `None` if it was switched off.
    pub fn kept(&self, manifest: &Manifest, found: Option<&Value>) -> Option<Manifest> {
        match found {
            Some(found) if manifest.is_binding() => {
                let actions = found["spec"]["validationActions"].clone();
                Some(manifest.clone().with_actions(actions))
            }
            None if manifest.is_binding() && self.enforcement(manifest) == Enforcement::Off => None,
            _ => Some(manifest.clone()),
        }
    }

    /// Applies an object of which the cluster has `found`. Another manager's fields are not taken.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn apply(
        &self,
        manifest: &Manifest,
        found: Option<&Value>,
    ) -> Result<Applied, Error> {
        let call = Call::write(
            Method::PATCH,
            format!("{}?fieldManager={FIELD_MANAGER}", manifest.path()),
            "application/apply-patch+yaml",
            manifest.object(),
        );
        let applied = match self.requests.call(&call).await {
            Ok(body) => read(&body)?,
            Err(error) if error.is_conflict() => {
                let object = manifest.full_name();
                return Err(Refusal::Conflict { object, error }.into());
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
    pub async fn set_mode(&self, binding: &Manifest, mode: Option<Mode>) -> Result<(), Error> {
        let exists = matches!(self.enforcement(binding), Enforcement::On(_));
        let written = match mode {
            None => self.delete(binding).await.map(drop),
            Some(mode) if exists => {
                let patch = json!({"spec": {"validationActions": mode.actions()}});
                let call = Call::write(
                    Method::PATCH,
                    format!("{}?fieldManager={FIELD_MANAGER}", binding.path()),
                    "application/merge-patch+json",
                    &patch,
                );
                let patched = self.requests.call(&call).await;
                patched.map(drop).map_err(Error::Api)
            }
            Some(mode) => {
                let binding = binding.clone().with_actions(mode.actions());
                self.apply(&binding, None).await.map(drop)
            }
        };
        let error = match written {
            Err(Error::Api(error)) if error.leaves_writes_unknown() => error,
            written => return written,
        };
        let now = object(self.requests, binding.path()).await;
        match now.is_ok_and(|now| now.as_ref().map(Mode::of) == mode) {
            true => Ok(()),
            false => {
                let policy = binding.name().to_owned();
                Err(Refusal::Unknown { policy, error }.into())
            }
        }
    }

    /// Deletes an object, if it is there. Returns whether it was.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn delete(&self, manifest: &Manifest) -> Result<bool, Error> {
        self.send_delete(manifest.path()).await
    }

    /// Lets the server check whether every object could be deleted.
    ///
    /// # Errors
    /// If one could not.
    pub async fn may_delete(&self) -> Result<(), Error> {
        for (manifest, _) in &self.objects {
            self.send_delete(format!("{}?dryRun=All", manifest.path()))
                .await?;
        }
        Ok(())
    }

    async fn send_delete(&self, path: String) -> Result<bool, Error> {
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
    pub async fn until_enforced(&self, wanted: bool) -> Result<Option<ApiError>, Error> {
        let end = Instant::now() + EFFECT_TIMEOUT;
        self.until(&wrong_time(), wanted, end).await?;
        let node = match any_node(self.requests).await {
            Ok(Some(node)) => node,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        };
        match self.until(&held_without_lock(&node), wanted, end).await {
            Ok(()) => Ok(None),
            Err(Refusal::Unchecked { error, .. }) => Ok(Some(error)),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Sends `dry_run` until a policy of ours refuses it, or until it is admitted.
    ///
    /// # Errors
    /// If that is not so at `end`, or if it fails for another reason.
    async fn until(&self, dry_run: &Call, wanted: bool, end: Instant) -> Result<(), Refusal> {
        loop {
            let refusal = match self.requests.call(dry_run).await {
                Ok(_) if !wanted => return Ok(()),
                Ok(_) => Refusal::NotEnforced,
                Err(error) if error.policy_code().is_some() && wanted => return Ok(()),
                Err(error) if error.policy_code().is_some() => Refusal::StillEnforced(error),
                Err(error) if error.may_pass() => Refusal::Unchecked { wanted, error },
                Err(error) => return Err(Refusal::Unchecked { wanted, error }),
            };
            if Instant::now() >= end {
                return Err(refusal);
            }
            sleep(EFFECT_POLL).await;
        }
    }
}

/// The object at `path`; `None` if the server says that there is none.
///
/// # Errors
/// If it can't be read, or if the server has no such API.
pub async fn object(requests: &Requests, path: String) -> Result<Option<Value>, Error> {
    match requests.call(&Call::get(path, Accept::Json)).await {
        Ok(body) => read(&body).map(Some),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) if error.is_not_installed() => Err(Refusal::NoAdmission.into()),
        Err(error) => Err(error.into()),
    }
}

/// An object that the server sent.
///
/// # Errors
/// If it is not JSON.
fn read(body: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(body).map_err(|error| ApiError::Unreadable(error.to_string()).into())
}
