//! What became of a pod after its deletion.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::Error;
use maintenance_lease::protocol::{Instant, Now, Span};

use super::Reader;
use crate::constants::JOB_TRACKING;
use crate::facts::PodSnapshot;
use crate::facts::owner::controller;
use crate::wire::instant;

/// How often is looked.
const EVERY: Duration = Duration::from_millis(250);

/// Labels that a controller gives to all its pods and no others, so that it need not be looked for them
/// among all pods of the namespace.
const OF_ONE_CONTROLLER: [&str; 3] = [
    "pod-template-hash",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
];

/// What is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterDeletion {
    /// Nothing of that name.
    Gone,
    /// The object itself: its finalizers hold it.
    Held {
        /// By whom.
        finalizers: Vec<String>,
    },
    /// Another pod of that name, or one that the same controller made since.
    Replaced(Replacement),
}

/// A pod in place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its node; `None`: it has none yet.
    pub node: Option<String>,
    /// It runs, or has run already.
    pub is_back: bool,
}

/// The pods among which a replacement is: those that the same controller made since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameController {
    /// The controller's uid.
    controller: String,
    /// What selects its pods, and perhaps others.
    selector: String,
    /// When the pod was asked to end, which is when many controllers replace it.
    since: Instant,
}

/// The uids of replacements and of the pods that they replace. No replacement is reported for two pods.
pub type Taken = RefCell<BTreeMap<String, String>>;

impl SameController {
    /// Those of `pod`, which was read at `now`; `None`: it has no controller.
    #[must_use]
    pub fn of(pod: &Pod, now: Now) -> Option<Self> {
        let metadata = &pod.metadata;
        let labels = metadata.labels.iter().flatten();
        let mut telling = labels.filter(|(key, _)| OF_ONE_CONTROLLER.contains(&key.as_str()));
        let asked = metadata.deletion_timestamp.as_ref().map(|ends| {
            let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
            instant(ends) - Span::seconds(u32::try_from(grace).unwrap_or(0))
        });
        Some(Self {
            controller: controller(metadata)?.uid.clone(),
            selector: telling
                .next()
                .map(|(key, value)| format!("{key}={value}"))
                .unwrap_or_default(),
            since: asked.unwrap_or(now.earliest),
        })
    }

    /// Whether `pod` was made in place of the one with `uid`.
    fn has(&self, pod: &Pod, uid: &str) -> bool {
        let metadata = &pod.metadata;
        let made = metadata.creation_timestamp.as_ref().map(instant);
        // The server gives whole seconds.
        let second = Span::seconds(1);
        controller(metadata).is_some_and(|controller| controller.uid == self.controller)
            && metadata.uid.as_deref() != Some(uid)
            && metadata.deletion_timestamp.is_none()
            && made.is_some_and(|made| made + second > self.since)
    }
}

impl AfterDeletion {
    /// What `now` (`None`: nothing) is to the pod of `uid`.
    #[must_use]
    pub fn of(now: Option<&Pod>, uid: &str) -> Self {
        let Some(pod) = now else {
            return Self::Gone;
        };
        let sight = PodSnapshot::of(pod);
        if sight.uid == uid {
            return Self::Held {
                finalizers: sight.finalizers,
            };
        }
        Self::Replaced(Replacement::of(pod))
    }

    /// Whether there is nothing more to wait for: a replacement runs, or none comes before the
    /// finalizers are gone.
    fn is_final(&self) -> bool {
        match self {
            Self::Gone => false,
            // A Job removes its own once it has counted the pod.
            Self::Held { finalizers } => finalizers.iter().any(|name| name != JOB_TRACKING),
            Self::Replaced(replacement) => replacement.is_back,
        }
    }
}

impl Replacement {
    fn of(pod: &Pod) -> Self {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        let is_back = matches!(phase, Some("Running" | "Succeeded"));
        let PodSnapshot {
            name, uid, node, ..
        } = PodSnapshot::of(pod);
        Self {
            name,
            uid,
            node: Some(node).filter(|node| !node.is_empty()),
            is_back,
        }
    }
}

impl Reader {
    /// What became of `pod`. If a replacement is `expected`, this waits until the replacement runs,
    /// or until finalizers hold the old pod, for at most `timeout`. Replacements with other names are
    /// searched in `same_controller`; the one that is found is added to `taken`.
    ///
    /// # Errors
    /// If it can't be read.
    pub async fn after_deletion(
        &self,
        pod: &PodSnapshot,
        same_controller: Option<&SameController>,
        taken: &Taken,
        expected: bool,
        timeout: Duration,
    ) -> Result<AfterDeletion, Error> {
        let limit = tokio::time::sleep(timeout);
        tokio::pin!(limit);
        loop {
            let now = self.pod(&pod.namespace, &pod.name).await?;
            let mut after_deletion = AfterDeletion::of(now.as_ref(), &pod.uid);
            if let (AfterDeletion::Gone, Some(same_controller)) = (&after_deletion, same_controller)
            {
                let replacement = self.replacement(pod, same_controller, taken).await?;
                after_deletion = replacement.map_or(AfterDeletion::Gone, AfterDeletion::Replaced);
            }
            if !expected || after_deletion.is_final() || limit.is_elapsed() {
                return Ok(after_deletion);
            }
            tokio::select! {
                () = &mut limit => {}
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    /// The first that came after `pod` was asked to end, of those that no other has `taken`.
    async fn replacement(
        &self,
        pod: &PodSnapshot,
        same_controller: &SameController,
        taken: &Taken,
    ) -> Result<Option<Replacement>, Error> {
        let mut pods = self.pods(&pod.namespace, &same_controller.selector).await?;
        pods.retain(|other| same_controller.has(other, &pod.uid));
        pods.sort_by_cached_key(|pod| {
            let metadata = &pod.metadata;
            let made = metadata.creation_timestamp.as_ref().map(instant);
            (made, metadata.name.clone())
        });
        let mut taken = taken.borrow_mut();
        let replacements = pods.iter().map(Replacement::of);
        let first = { replacements }.find(|replacement| {
            let by = taken.get(&replacement.uid);
            by.is_none_or(|by| *by == pod.uid)
        });
        if let Some(first) = &first {
            taken.insert(first.uid.clone(), pod.uid.clone());
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).expect("a pod")
    }

    #[test]
    fn the_current_lease_shows_what_happened() {
        let pod = |uid, phase: &str, finalizers: &[&str]| {
            pod(json!({
                "metadata": {"name": "web-0", "uid": uid, "finalizers": finalizers},
                "spec": {"containers": [], "nodeName": "worker-1"},
                "status": {"phase": phase},
            }))
        };
        assert_eq!(AfterDeletion::of(None, "u-1"), AfterDeletion::Gone);
        let held = AfterDeletion::of(Some(&pod("u-1", "Running", &["a/b"])), "u-1");
        assert!(held.is_final());
        let finalizers = vec!["a/b".to_owned()];
        assert_eq!(held, AfterDeletion::Held { finalizers });
        let replaced = AfterDeletion::of(Some(&pod("u-2", "Running", &[])), "u-1");
        assert!(replaced.is_final() && !AfterDeletion::Gone.is_final());
        assert!(!AfterDeletion::of(Some(&pod("u-2", "Pending", &[])), "u-1").is_final());
    }

    #[test]
    fn a_replacement_is_of_the_same_controller_and_younger_than_the_request_to_end() {
        let of = |uid: &str, controller: &str, made: &str| {
            let owner = json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": controller,
                "controller": true,
            });
            json!({"metadata": {
                "name": uid, "uid": uid, "ownerReferences": [owner], "creationTimestamp": made,
                "labels": {"app": "web", "pod-template-hash": "5d4f"},
            }})
        };
        let mut ended = of("u-1", "c-1", "2026-01-01T00:00:00Z");
        ended["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:30Z");
        ended["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        let now = Now::at(Instant::from_micros(0));
        let same_controller = SameController::of(&pod(ended), now).expect("it has a controller");
        assert_eq!(same_controller.selector, "pod-template-hash=5d4f");
        for (uid, controller, made, expected) in [
            ("u-2", "c-1", "2026-01-01T01:00:00Z", true),
            ("u-2", "c-1", "2026-01-01T00:59:59Z", false),
            ("u-2", "c-2", "2026-01-01T01:00:00Z", false),
            ("u-1", "c-1", "2026-01-01T01:00:00Z", false),
        ] {
            let other = pod(of(uid, controller, made));
            assert_eq!(
                same_controller.has(&other, "u-1"),
                expected,
                "{uid} {controller} {made}"
            );
        }
        assert_eq!(SameController::of(&pod(json!({"metadata": {}})), now), None);
    }
}
