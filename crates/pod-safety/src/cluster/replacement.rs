//! What became of a pod after it was removed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Error, escape};
use serde::Deserialize as _;
use serde_json::Value;

use super::Reader;
use crate::constants::JOB_TRACKING;
use crate::facts::PodSnapshot;
use crate::facts::owner::{Kind, controller};
use crate::facts::pod::has_ended;
use crate::facts::replacement::{member, ordinals};
use crate::fencing::cost::leaves;
use crate::taint::OutOfService;
use crate::wire::instant;

/// The shortest time between two reads of a pod.
const EVERY: Duration = Duration::from_millis(250);

/// The same for each pod that is followed: many pods must not mean many requests per second.
const EVERY_PER_POD: Duration = Duration::from_millis(50);

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
    /// The same, and its controller wants no other pod: it was scaled down, has finished, or is gone too.
    Unwanted,
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
    /// It runs and is not being deleted, or has run already.
    pub is_back: bool,
}

/// A pod that was removed, or soon will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The pod.
    pub pod: PodSnapshot,
    /// The pods among which its replacement is; `None`: it has no controller.
    pub same_controller: Option<SameController>,
    /// A replacement is worth waiting for.
    pub is_expected: bool,
}

/// How the replacements of some pods are followed.
#[derive(Debug)]
pub struct Following {
    /// The uids of replacements and of the pods that they replace. No replacement is reported for two pods.
    taken: RefCell<BTreeMap<String, String>>,
    limit: Duration,
    every: Duration,
}

/// The pods among which a replacement is: those that the same controller made since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameController {
    /// The controller's uid.
    controller: String,
    kind: Kind,
    /// The controller's name.
    name: String,
    /// What selects its pods, and perhaps others.
    selector: String,
    /// When the pod was asked to end, which is when many controllers replace it.
    since: Instant,
}

impl Removed {
    /// Those of `pods` that leave their node once it is fenced, and that their controllers replace on other
    /// nodes. `taint` is the out-of-service taint that the node has.
    #[must_use]
    pub fn by_fencing(pods: &[Pod], taint: &OutOfService, now: Now) -> Vec<Self> {
        let leaving = pods.iter().filter(|pod| leaves(pod, taint));
        let removed = leaving.filter_map(|pod| {
            let same_controller = SameController::of(pod, now)?;
            // Those of a DaemonSet belong to their node, and of others nobody knows whether they come back.
            let moves = !matches!(same_controller.kind, Kind::DaemonSet | Kind::Other);
            moves.then(|| Self {
                pod: PodSnapshot::of(pod),
                same_controller: Some(same_controller),
                is_expected: true,
            })
        });
        removed.collect()
    }

    /// Whether its replacement has its name. That of another controller gets a new one.
    #[must_use]
    pub fn keeps_name(&self) -> bool {
        let same_controller = self.same_controller.as_ref();
        same_controller.is_some_and(|same_controller| same_controller.kind == Kind::StatefulSet)
    }
}

impl Following {
    /// Follows this many pods for at most `limit`.
    #[must_use]
    pub fn of(pods: usize, limit: Duration) -> Self {
        let pods = u32::try_from(pods).unwrap_or(u32::MAX);
        Self {
            taken: RefCell::default(),
            limit,
            every: EVERY.max(EVERY_PER_POD.saturating_mul(pods)),
        }
    }
}

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
        let controller = controller(metadata)?;
        Some(Self {
            controller: controller.uid.clone(),
            kind: Kind::of(controller),
            name: controller.name.clone(),
            selector: telling
                .next()
                .map(|(key, value)| format!("{key}={value}"))
                .unwrap_or_default(),
            since: asked.unwrap_or(now.earliest),
        })
    }

    /// Whether `pod`, which is not the one with `uid`, is of the same controller and not being deleted.
    fn has(&self, pod: &Pod, uid: &str) -> bool {
        let metadata = &pod.metadata;
        controller(metadata).is_some_and(|controller| controller.uid == self.controller)
            && metadata.uid.as_deref() != Some(uid)
            && metadata.deletion_timestamp.is_none()
    }

    /// Whether a pod of the controller was made after the request to end.
    fn is_since(&self, pod: &Pod) -> bool {
        let made = pod.metadata.creation_timestamp.as_ref().map(instant);
        // The server gives whole seconds.
        made.is_some_and(|made| made + Span::seconds(1) > self.since)
    }

    /// Whether the controller, as read, wants a pod in place of `pod`, beside the `active` ones that it has.
    fn wants(&self, pod: &str, read: &Value, active: usize) -> bool {
        let (spec, status) = (&read["spec"], &read["status"]);
        let number = |value: &Value| value.as_u64().and_then(|it| usize::try_from(it).ok());
        if self.kind == Kind::StatefulSet {
            let set = StatefulSet::deserialize(read).ok();
            let range = set.map(|set| ordinals(&set));
            let ordinal = member(pod).map(|(_, ordinal)| ordinal);
            return range.zip(ordinal).is_none_or(|(all, it)| all.contains(&it));
        }
        // A new controller of that name has pods of its own.
        if read["metadata"]["uid"] != *self.controller {
            return false;
        }
        if self.kind != Kind::Job {
            return active < number(&spec["replicas"]).unwrap_or(1);
        }
        let conditions = status["conditions"].as_array();
        let is_over = conditions.into_iter().flatten().any(|condition| {
            let ends = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];
            ends.iter().any(|end| condition["type"] == *end) && condition["status"] == "True"
        });
        let succeeded = number(&status["succeeded"]).unwrap_or(0);
        let left = number(&spec["completions"]).map(|all| all.saturating_sub(succeeded));
        let parallel = number(&spec["parallelism"]).unwrap_or(1);
        let most = left.map_or(parallel, |left| left.min(parallel));
        !is_over && spec["suspend"] != true && active < most
    }
}

impl AfterDeletion {
    /// What `now` (`None`: nothing) is to the pod of `uid`.
    #[must_use]
    pub fn of(now: Option<&Pod>, uid: &str) -> Self {
        let Some(pod) = now else {
            return Self::Gone;
        };
        let snapshot = PodSnapshot::of(pod);
        if snapshot.uid == uid {
            return Self::Held {
                finalizers: snapshot.finalizers,
            };
        }
        Self::Replaced(Replacement::of(pod))
    }

    /// Whether there is nothing more to wait for: a replacement runs, or none comes before the
    /// finalizers are gone.
    fn is_final(&self) -> bool {
        match self {
            Self::Gone => false,
            Self::Unwanted => true,
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
        let is_deleting = pod.metadata.deletion_timestamp.is_some();
        let is_back = match phase {
            Some("Running") => !is_deleting,
            phase => phase == Some("Succeeded"),
        };
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
    /// What became of a pod. If a replacement is expected, this waits until the replacement runs, until
    /// finalizers hold the old pod, or until its controller wants no other. Reads that fail for a temporary reason
    /// are retried until the limit.
    ///
    /// # Errors
    /// If it can't be read.
    pub async fn after_deletion(
        &self,
        removed: &Removed,
        following: &Following,
    ) -> Result<AfterDeletion, Error> {
        let limit = tokio::time::sleep(following.limit);
        tokio::pin!(limit);
        loop {
            match self.read_after_deletion(removed, following).await {
                Err(Error::Api(error)) if error.may_pass() && !limit.is_elapsed() => {}
                Ok(after_deletion)
                    if removed.is_expected && !after_deletion.is_final() && !limit.is_elapsed() => {
                }
                result => return result,
            }
            tokio::select! {
                () = &mut limit => {}
                () = tokio::time::sleep(following.every) => {}
            }
        }
    }

    async fn read_after_deletion(
        &self,
        removed: &Removed,
        following: &Following,
    ) -> Result<AfterDeletion, Error> {
        let pod = &removed.pod;
        let now = self.pod(&pod.namespace, &pod.name).await?;
        let after_deletion = AfterDeletion::of(now.as_ref(), &pod.uid);
        let (AfterDeletion::Gone, Some(same_controller)) =
            (&after_deletion, &removed.same_controller)
        else {
            return Ok(after_deletion);
        };
        // A pod of a StatefulSet is only replaced by one of the same name.
        let others = match same_controller.kind {
            Kind::StatefulSet => Vec::new(),
            _ => self.pods(&pod.namespace, &same_controller.selector).await?,
        };
        let others = others
            .into_iter()
            .filter(|other| same_controller.has(other, &pod.uid));
        let others: Vec<Pod> = others.collect();
        if let Some(replacement) = following.replacement(pod, same_controller, &others) {
            return Ok(AfterDeletion::Replaced(replacement));
        }
        let active = others.iter().filter(|other| !has_ended(other)).count();
        let is_wanted = !removed.is_expected || self.is_wanted(pod, same_controller, active).await;
        Ok(match is_wanted {
            true => AfterDeletion::Gone,
            false => AfterDeletion::Unwanted,
        })
    }

    /// Whether the controller wants a pod in place of `pod`, beside the `active` ones that it has. If that can't be
    /// read, it does.
    async fn is_wanted(
        &self,
        pod: &PodSnapshot,
        same_controller: &SameController,
        active: usize,
    ) -> bool {
        let (group, plural) = match same_controller.kind {
            Kind::ReplicaSet => ("/apis/apps/v1", "replicasets"),
            Kind::ReplicationController => ("/api/v1", "replicationcontrollers"),
            Kind::StatefulSet => ("/apis/apps/v1", "statefulsets"),
            Kind::Job => ("/apis/batch/v1", "jobs"),
            Kind::DaemonSet | Kind::Other => return true,
        };
        let (namespace, name) = (escape(&pod.namespace), escape(&same_controller.name));
        let path = format!("{group}/namespaces/{namespace}/{plural}/{name}");
        match self.get::<Value>(&path).await {
            Ok(read) => read.is_some_and(|read| same_controller.wants(&pod.name, &read, active)),
            Err(_) => true,
        }
    }
}

impl Following {
    /// The first of the controller's `others` that came after `pod` was asked to end, of those that replace no other
    /// pod.
    fn replacement(
        &self,
        pod: &PodSnapshot,
        same_controller: &SameController,
        others: &[Pod],
    ) -> Option<Replacement> {
        let mut since: Vec<&Pod> = others
            .iter()
            .filter(|other| same_controller.is_since(other))
            .collect();
        since.sort_by_cached_key(|pod| {
            let metadata = &pod.metadata;
            let made = metadata.creation_timestamp.as_ref().map(instant);
            (made, metadata.name.clone())
        });
        let mut taken = self.taken.borrow_mut();
        let replacements = since.into_iter().map(Replacement::of);
        let first = { replacements }.find(|replacement| {
            let by = taken.get(&replacement.uid);
            by.is_none_or(|by| *by == pod.uid)
        })?;
        taken.insert(first.uid.clone(), pod.uid.clone());
        Some(first)
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
        // Its node may have been lost as well.
        let mut deleting = pod("u-2", "Running", &[]);
        let at = serde_json::from_value(json!("2026-01-01T00:00:00Z"));
        deleting.metadata.deletion_timestamp = Some(at.expect("a time"));
        assert!(!AfterDeletion::of(Some(&deleting), "u-1").is_final());
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
                same_controller.has(&other, "u-1") && same_controller.is_since(&other),
                expected,
                "{uid} {controller} {made}"
            );
        }
        assert_eq!(SameController::of(&pod(json!({"metadata": {}})), now), None);
    }

    fn same_controller(kind: Kind) -> SameController {
        SameController {
            controller: "c-1".to_owned(),
            kind,
            name: "web".to_owned(),
            selector: String::new(),
            since: Instant::from_micros(0),
        }
    }

    #[test]
    fn a_controller_that_was_scaled_down_or_has_finished_wants_no_replacement() {
        let done = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        for (kind, spec, status, active, wanted) in [
            (Kind::ReplicaSet, json!({"replicas": 2}), json!({}), 1, true),
            (
                Kind::ReplicaSet,
                json!({"replicas": 2}),
                json!({}),
                2,
                false,
            ),
            (Kind::ReplicaSet, json!({}), json!({}), 0, true),
            (
                Kind::ReplicationController,
                json!({"replicas": 0}),
                json!({}),
                0,
                false,
            ),
            (
                Kind::StatefulSet,
                json!({"replicas": 3}),
                json!({}),
                0,
                true,
            ),
            (
                Kind::StatefulSet,
                json!({"replicas": 2}),
                json!({}),
                0,
                false,
            ),
            (Kind::Job, json!({}), json!({}), 0, true),
            (Kind::Job, json!({"suspend": true}), json!({}), 0, false),
            (Kind::Job, json!({"parallelism": 2}), json!({}), 1, true),
            (
                Kind::Job,
                json!({"completions": 3, "parallelism": 2}),
                json!({"succeeded": 2}),
                1,
                false,
            ),
            (Kind::Job, json!({}), done, 0, false),
        ] {
            let mut read = json!({"metadata": {"uid": "c-1"}, "spec": spec, "status": status});
            if kind == Kind::StatefulSet {
                let parts = [
                    ("selector", json!({})),
                    ("template", json!({})),
                    ("serviceName", json!("")),
                ];
                for (part, value) in parts {
                    read["spec"][part] = value;
                }
                read["status"] = Value::Null;
            }
            assert_eq!(
                same_controller(kind).wants("web-2", &read, active),
                wanted,
                "{kind:?} {read}"
            );
        }
        let other = json!({"metadata": {"uid": "c-2"}, "spec": {"replicas": 2}});
        assert!(!same_controller(Kind::ReplicaSet).wants("web-2", &other, 0));
    }

    #[test]
    fn pods_removed_by_a_fencing_are_followed_if_they_move() {
        let pod = |name: &str, api: &str, kind: &str, phase: &str, everything: bool| {
            let owner = json!({"apiVersion": api, "kind": kind, "name": "o", "uid": "c-1", "controller": true});
            let tolerations = if everything {
                json!([{"operator": "Exists"}])
            } else {
                json!([])
            };
            pod(json!({
                "metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {"containers": [], "tolerations": tolerations},
                "status": {"phase": phase},
            }))
        };
        let pods = [
            pod("web", "apps/v1", "ReplicaSet", "Running", false),
            pod("db", "apps/v1", "StatefulSet", "Running", false),
            pod("copy", "batch/v1", "Job", "Running", false),
            pod("log", "apps/v1", "DaemonSet", "Running", false),
            pod("pg", "postgresql.cnpg.io/v1", "Cluster", "Running", false),
            pod("over", "batch/v1", "Job", "Succeeded", false),
            pod("stays", "apps/v1", "ReplicaSet", "Running", true),
            serde_json::from_value(json!({"metadata": {"name": "bare"}})).expect("a pod"),
        ];
        let now = Now::at(Instant::from_micros(0));
        let removed = Removed::by_fencing(&pods, &OutOfService::No, now);
        let names: Vec<&str> = removed.iter().map(|one| &*one.pod.name).collect();
        assert_eq!(names, ["web", "db", "copy"]);
    }

    #[test]
    fn many_pods_are_read_less_often() {
        let every = |pods| Following::of(pods, Duration::ZERO).every;
        assert_eq!((every(1), every(5)), (EVERY, EVERY));
        assert_eq!(every(110), Duration::from_millis(5500));
    }
}
