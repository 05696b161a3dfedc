//! Finds the replacements of pods that were removed.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::{Now, Span};
use maintenance_lease::{ApiError, escape};
use serde::Deserialize as _;
use serde_json::Value;

use crate::bugs::{self, Bug};
use crate::constants::JOB_TRACKING;
use crate::controller::{Kind, controller};
use crate::facts::pod::{has_ended, is_of_lost_node, phase};
use crate::facts::replacement::{member, ordinals};
use crate::facts::{Facts, PodSnapshot};
use crate::fencing::cost::leaves;
use crate::outcome::{Outcome, Replacement};
use crate::removed::{Removed, SameController};
use crate::taint::OutOfService;
use crate::wire::instant;

/// How far the estimate of the server's time may be off, in seconds.
const TIME_SLACK: u32 = 2;

/// Labels that select the pods of one controller, or of one StatefulSet pod, without the other pods of the
/// namespace.
const DISTINGUISHING_LABELS: [&str; 4] = [
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
    "pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
];

/// The uids of replacements, each with the uid of the pod that it replaces. A replacement is never reported
/// for two pods.
pub(crate) type Replacements = BTreeMap<String, String>;

/// Pods that are read with one request: a namespace, and the key of a label or `None` for all pods.
pub(crate) type Group<'a> = (&'a str, Option<&'a str>);

impl Removed {
    /// The pods among `pods` that leave their node once it is fenced, and that their controllers replace on
    /// other nodes. They were read after `now`. `taint` is the out-of-service taint that the node has.
    #[must_use]
    pub fn by_fencing(pods: &[Pod], taint: &OutOfService, now: Now) -> Vec<Self> {
        let leaving = pods.iter().filter(|pod| leaves(pod, taint));
        let removed = leaving.filter_map(|pod| {
            let same_controller = SameController::of(pod, now)?;
            // Pods of a DaemonSet belong to their node. For pods of unknown controllers, it is unknown
            // whether they are replaced.
            let moves = !matches!(same_controller.kind, Kind::DaemonSet | Kind::Other);
            moves.then(|| Self::of(pod, Some(same_controller), true))
        });
        removed.collect()
    }

    /// `pod`, which pods can replace it, and whether to wait for a replacement.
    #[must_use]
    pub fn of(pod: &Pod, same_controller: Option<SameController>, is_expected: bool) -> Self {
        let PodSnapshot {
            namespace,
            name,
            uid,
            ..
        } = PodSnapshot::of(pod);
        Self {
            namespace,
            name,
            uid,
            same_controller,
            is_expected,
        }
    }

    /// The pod of `facts`, which is force-deleted, and which pods can replace it.
    #[must_use]
    pub fn by_deletion(facts: &Facts, same_controller: Option<SameController>) -> Self {
        let pod = &facts.pod;
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            same_controller,
            is_expected: facts.is_replaced_once_gone(),
        }
    }

    /// The group that it is read with, and the value of its label.
    pub(crate) fn group(&self) -> (Group<'_>, &str) {
        let same_controller = self.same_controller.as_ref();
        let label = same_controller.and_then(|same_controller| same_controller.label.as_ref());
        let namespace = &*self.namespace;
        label.map_or(((namespace, None), ""), |(key, value)| {
            ((namespace, Some(&**key)), &**value)
        })
    }

    /// The pods of the same controller among `pods`.
    fn others<'a>(&self, pods: &'a [Pod]) -> impl Iterator<Item = &'a Pod> {
        let same_controller = self.same_controller.as_ref();
        pods.iter().filter(move |pod| {
            same_controller.is_some_and(|same_controller| same_controller.has(pod, &self.uid))
        })
    }

    /// What happened to the pod, if `pods` are the current pods.
    pub(crate) fn outcome(&self, pods: &[Pod], taken: &mut Replacements) -> Outcome {
        let name = Some(&self.name);
        let replacement = match pods.iter().find(|pod| pod.metadata.name.as_ref() == name) {
            Some(pod) if pod.metadata.uid.as_deref() == Some(&*self.uid) => {
                let finalizers = pod.metadata.finalizers.clone().unwrap_or_default();
                return Outcome::Held { finalizers };
            }
            Some(pod) => Some(Replacement::of(pod)),
            // A pod of a StatefulSet is only replaced by a pod with the same name.
            None if self.keeps_name() => None,
            None => self.replacement(pods, taken),
        };
        let reasons = Vec::new();
        match replacement {
            Some(replacement) => Outcome::Replaced {
                replacement,
                reasons,
            },
            None if self.is_expected => Outcome::Unreplaced { reasons },
            None => Outcome::Deleted,
        }
    }

    /// The pod in `pods` that replaces this one. It is the first pod that the same controller created after
    /// the deletion, has not failed, and does not replace another pod. Once found, it stays the same for as
    /// long as it exists.
    fn replacement(&self, pods: &[Pod], taken: &mut Replacements) -> Option<Replacement> {
        let same_controller = self.same_controller.as_ref()?;
        let others = self.others(pods);
        // If a pod fails, the controller creates another one, up to its limit of retries.
        let mut since: Vec<&Pod> = others
            .filter(|other| same_controller.is_since(other) && phase(other) != "Failed")
            .collect();
        since.sort_by_cached_key(|pod| {
            let metadata = &pod.metadata;
            let created = metadata.creation_timestamp.as_ref().map(instant);
            (created, metadata.name.clone())
        });
        let replaces = |pod: &Pod| taken.get(pod.metadata.uid.as_ref()?);
        let mine = { since.iter() }.find(|pod| replaces(pod) == Some(&self.uid));
        let first = mine.or_else(|| since.iter().find(|pod| replaces(pod).is_none()))?;
        let first = Replacement::of(first);
        taken.insert(first.uid.clone(), self.uid.clone());
        Some(first)
    }

    /// Whether there is nothing more to wait for after `outcome`: a replacement runs, or none will come
    /// before the finalizers are removed.
    pub(crate) fn is_settled(&self, outcome: &Outcome) -> bool {
        !self.is_expected
            || match outcome {
                // A Job removes its finalizer once it has counted the pod.
                Outcome::Held { finalizers } => finalizers.iter().any(|name| name != JOB_TRACKING),
                outcome => !outcome.is_unfinished(),
            }
    }

    /// The API path of its controller, if the kind is known.
    pub(crate) fn controller_path(&self) -> Option<String> {
        let same_controller = self.same_controller.as_ref()?;
        let (group, plural) = match same_controller.kind {
            Kind::ReplicaSet => ("/apis/apps/v1", "replicasets"),
            Kind::ReplicationController => ("/api/v1", "replicationcontrollers"),
            Kind::StatefulSet => ("/apis/apps/v1", "statefulsets"),
            Kind::Job => ("/apis/batch/v1", "jobs"),
            Kind::DaemonSet | Kind::Other => return None,
        };
        let (namespace, name) = (escape(&self.namespace), escape(&same_controller.name));
        Some(format!("{group}/namespaces/{namespace}/{plural}/{name}"))
    }

    /// Whether its controller, as `read`, wants a pod in its place in addition to `pods`. If the controller
    /// could not be read, it is assumed to want one.
    pub(crate) fn is_wanted(&self, read: &Result<Option<Value>, ApiError>, pods: &[Pod]) -> bool {
        let active = self.others(pods).filter(|other| !has_ended(other)).count();
        match (read, &self.same_controller) {
            (Ok(Some(read)), Some(same_controller)) => {
                same_controller.wants(&self.name, read, active)
            }
            (Ok(_), _) => false,
            (Err(_), _) => true,
        }
    }

    /// Whether its replacement has the same name. Other controllers give the replacement a new name.
    #[must_use]
    pub fn keeps_name(&self) -> bool {
        let same_controller = self.same_controller.as_ref();
        same_controller.is_some_and(|same_controller| same_controller.kind == Kind::StatefulSet)
    }
}

impl SameController {
    /// Identifies the pods that can replace `pod`, which was read after `now`; `None` if it has no
    /// controller.
    #[must_use]
    pub fn of(pod: &Pod, now: Now) -> Option<Self> {
        let metadata = &pod.metadata;
        let labels = metadata.labels.iter().flatten();
        let mut telling = labels.filter(|(key, _)| DISTINGUISHING_LABELS.contains(&key.as_str()));
        let deleted_at = metadata.deletion_timestamp.as_ref().map(|ends| {
            let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
            instant(ends) - Span::seconds(u32::try_from(grace).unwrap_or(0))
        });
        let controller = controller(metadata)?;
        Some(Self {
            controller: controller.uid.clone(),
            kind: Kind::of(controller),
            name: controller.name.clone(),
            label: telling
                .next()
                .map(|(key, value)| (key.clone(), value.clone())),
            since: deleted_at.unwrap_or(now.earliest - Span::seconds(TIME_SLACK)),
        })
    }

    /// Whether `pod` belongs to the same controller, is not being deleted, and is not the pod with `uid`.
    fn has(&self, pod: &Pod, uid: &str) -> bool {
        let metadata = &pod.metadata;
        controller(metadata).is_some_and(|controller| {
            controller.uid == self.controller || bugs::active(Bug::ReplacementOfAnyController)
        }) && metadata.uid.as_deref() != Some(uid)
            && metadata.deletion_timestamp.is_none()
    }

    /// Whether a pod of the controller was created after the deletion.
    fn is_since(&self, pod: &Pod) -> bool {
        let created = pod.metadata.creation_timestamp.as_ref().map(instant);
        // Creation times have whole seconds.
        created.is_some_and(|made| {
            made + Span::seconds(1) > self.since || bugs::active(Bug::EarlierReplacement)
        })
    }

    /// Whether the controller, as `read`, wants a pod in place of `pod`, in addition to its `active` pods.
    fn wants(&self, pod: &str, read: &Value, active: usize) -> bool {
        // A controller that is being deleted creates nothing.
        if !read["metadata"]["deletionTimestamp"].is_null() {
            return false;
        }
        let (spec, status) = (&read["spec"], &read["status"]);
        let number = |value: &Value| value.as_u64().and_then(|it| usize::try_from(it).ok());
        if self.kind == Kind::StatefulSet {
            let set = StatefulSet::deserialize(read).ok();
            let range = set.map(|set| ordinals(&set));
            let ordinal = member(pod).map(|(_, ordinal)| ordinal);
            return range.zip(ordinal).is_none_or(|(all, it)| all.contains(&it));
        }
        // A new controller with that name has its own pods.
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
        let left = match number(&spec["completions"]) {
            Some(all) => Some(all.saturating_sub(succeeded)),
            // Without `completions`, the pods share a work queue, and the first success means that it is
            // empty.
            None if succeeded > 0 => Some(0),
            None => None,
        };
        let parallel = number(&spec["parallelism"]).unwrap_or(1);
        let most = left.map_or(parallel, |left| left.min(parallel));
        !is_over && spec["suspend"] != true && active < most
    }
}

impl Replacement {
    fn of(pod: &Pod) -> Self {
        let is_deleting = pod.metadata.deletion_timestamp.is_some();
        let is_back = match phase(pod) {
            "Running" if bugs::active(Bug::ReplacementOnLostNode) => !is_deleting,
            "Running" => !is_deleting && !is_of_lost_node(pod),
            phase => phase == "Succeeded",
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

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).expect("a pod")
    }

    #[test]
    fn the_current_pod_shows_what_happened() {
        let pod = |uid, phase: &str, finalizers: &[&str]| {
            pod(json!({
                "metadata": {"name": "web-0", "uid": uid, "finalizers": finalizers},
                "spec": {"containers": [], "nodeName": "worker-1"},
                "status": {"phase": phase},
            }))
        };
        let before = pod("u-1", "Running", &[]);
        let removed = Removed::of(&before, Some(same_controller(Kind::StatefulSet)), true);
        let is_settled = |pods: &[Pod]| {
            let outcome = removed.outcome(pods, &mut Replacements::new());
            (removed.is_settled(&outcome), outcome)
        };
        let reasons = Vec::new();
        assert_eq!(is_settled(&[]), (false, Outcome::Unreplaced { reasons }));
        for (finalizer, settled) in [("a/b", true), (JOB_TRACKING, false)] {
            let finalizers = vec![finalizer.to_owned()];
            let held = is_settled(&[pod("u-1", "Running", &[finalizer])]);
            assert_eq!(held, (settled, Outcome::Held { finalizers }));
        }
        let is_back = |pod: Pod| is_settled(&[pod]).0;
        assert!(is_back(pod("u-2", "Running", &[])));
        assert!(!is_back(pod("u-2", "Pending", &[])));
        // Its node may be lost too. Then the control plane marks the pod as not ready and later deletes it.
        let mut deleting = pod("u-2", "Running", &[]);
        let at = serde_json::from_value(json!("2026-01-01T00:00:00Z"));
        deleting.metadata.deletion_timestamp = Some(at.expect("a time"));
        assert!(!is_back(deleting));
        for (ready, reason, containers, expected) in [
            ("True", "", "True", true),
            ("False", "", "True", false),
            ("False", "ReadinessGatesNotReady", "True", true),
            ("False", "ContainersNotReady", "False", true),
        ] {
            let mut after = pod("u-2", "Running", &[]);
            let conditions = serde_json::from_value(json!([
                {"type": "Ready", "status": ready, "reason": reason},
                {"type": "ContainersReady", "status": containers},
            ]));
            after.status.as_mut().expect("a status").conditions = conditions.expect("conditions");
            assert_eq!(is_back(after), expected, "{ready} {reason} {containers}");
        }
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
        let label = ("pod-template-hash".to_owned(), "5d4f".to_owned());
        assert_eq!(same_controller.label, Some(label));
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
            label: None,
            since: Instant::from_micros(0),
        }
    }

    /// A pod of the ReplicaSet `web` with this creation time.
    fn of_web(name: &str, made: &str, phase: &str) -> Pod {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "c-1", "controller": true,
        });
        pod(json!({
            "metadata": {
                "name": name, "uid": name, "ownerReferences": [owner], "creationTimestamp": made,
            },
            "status": {"phase": phase},
        }))
    }

    fn removed(pod: &Pod, read_after: &str) -> Removed {
        let at = serde_json::from_value(json!(read_after)).expect("a time");
        let same_controller = SameController::of(pod, Now::at(instant(&at)));
        Removed::of(pod, same_controller, true)
    }

    const MADE: &str = "2026-01-01T00:00:10Z";

    #[test]
    fn a_replacement_counts_although_the_clock_is_a_second_ahead() {
        let old = of_web("web-x", "2026-01-01T00:00:00Z", "Running");
        let pods = [of_web("web-y", MADE, "Pending")];
        let outcome =
            |read_after| removed(&old, read_after).outcome(&pods, &mut Replacements::new());
        for read_after in ["2026-01-01T00:00:10Z", "2026-01-01T00:00:12Z"] {
            let outcome = outcome(read_after);
            assert!(matches!(outcome, Outcome::Replaced { .. }), "{outcome:?}");
        }
        let reasons = Vec::new();
        let outcome = outcome("2026-01-01T00:00:13Z");
        assert_eq!(outcome, Outcome::Unreplaced { reasons });
    }

    #[test]
    fn a_pod_keeps_its_replacement_when_another_one_comes() {
        let old = ["web-1", "web-2"].map(|name| of_web(name, "2026-01-01T00:00:00Z", "Running"));
        let [first, second] = old.each_ref().map(|pod| removed(pod, MADE));
        let mut taken = Replacements::new();
        let mut name = |removed: &Removed, pods: &[Pod]| match removed.outcome(pods, &mut taken) {
            Outcome::Replaced { replacement, .. } => Some(replacement.name),
            _ => None,
        };
        let one = [of_web("web-z", MADE, "Running")];
        assert_eq!(name(&first, &one).as_deref(), Some("web-z"));
        assert_eq!(name(&second, &one), None);
        let both = ["web-a", "web-z"].map(|name| of_web(name, MADE, "Running"));
        assert_eq!(name(&first, &both).as_deref(), Some("web-z"));
        assert_eq!(name(&second, &both).as_deref(), Some("web-a"));
    }

    #[test]
    fn a_replacement_that_failed_does_not_count() {
        let old = of_web("web-x", "2026-01-01T00:00:00Z", "Running");
        let removed = removed(&old, MADE);
        let pods = [
            of_web("web-a", MADE, "Failed"),
            of_web("web-b", MADE, "Running"),
        ];
        let Outcome::Replaced { replacement, .. } =
            removed.outcome(&pods, &mut Replacements::new())
        else {
            panic!("it has a replacement")
        };
        assert_eq!(replacement.name, "web-b");
        let failed = removed.outcome(&pods[..1], &mut Replacements::new());
        assert!(matches!(failed, Outcome::Unreplaced { .. }), "{failed:?}");
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
            (
                Kind::Job,
                json!({"parallelism": 2}),
                json!({"succeeded": 1}),
                0,
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
        let ending =
            json!({"metadata": {"uid": "c-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        for kind in [Kind::ReplicaSet, Kind::StatefulSet, Kind::Job] {
            assert!(
                !same_controller(kind).wants("web-0", &ending, 0),
                "{kind:?}"
            );
        }
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
        let names: Vec<&str> = removed.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["web", "db", "copy"]);
    }
}
