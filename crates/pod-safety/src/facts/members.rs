//! The members of StatefulSets: their ordinals, and which are ready.

use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::{Instant, Now, Span};

use super::pod::{condition, is_true, phase};
use crate::wire::instant;

/// A member of a StatefulSet that is running and ready, and not being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyMember {
    /// Its name.
    pub name: String,
    /// Since when it is ready, if it is known.
    pub since: Option<Instant>,
}

impl ReadyMember {
    /// The member, if it is ready. Its condition counts and not its containers: if its node is unreachable, the
    /// control plane changes only the condition.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let ready = condition(pod, "Ready").filter(|one| is_true(one))?;
        let is_running = phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none();
        is_running.then(|| Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            since: ready.last_transition_time.as_ref().map(instant),
        })
    }

    /// Whether it has been ready for `minReadySeconds`.
    fn is_available(&self, min_ready: Span, now: Now) -> bool {
        let since = self.since;
        min_ready == Span::ZERO || since.is_some_and(|since| since + min_ready <= now.latest)
    }
}

/// The name of the StatefulSet and the ordinal in a pod's name, if the name has that form.
pub(crate) fn member(pod: &str) -> Option<(&str, i32)> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?)).filter(|(_, ordinal)| *ordinal >= 0 && !set.is_empty())
}

/// The ordinals of the members of a StatefulSet.
pub(crate) fn ordinals(set: &StatefulSet) -> Range<i32> {
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start);
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let start = start.unwrap_or(0);
    start..start.saturating_add(replicas)
}

/// The members that must become ready before a set creates the one with this ordinal.
pub(crate) fn unready(
    set: &StatefulSet,
    ordinal: i32,
    ready: &[ReadyMember],
    now: Now,
) -> Vec<String> {
    let spec = set.spec.as_ref();
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let min_ready = Span::seconds(u32::try_from(min_ready).unwrap_or(0));
    let is_ready = |name: &String| {
        let mut ready = ready.iter();
        ready.any(|member| member.name == *name && member.is_available(min_ready, now))
    };
    let mut unready = awaited(set, ordinal);
    unready.retain(|name| !is_ready(name));
    unready
}

/// The members that must be ready before a set creates the one with this ordinal: `processReplica` in
/// Kubernetes' stateful_set_control.go.
pub(crate) fn awaited(set: &StatefulSet, ordinal: i32) -> Vec<String> {
    let spec = set.spec.as_ref();
    let policy = spec.and_then(|spec| spec.pod_management_policy.as_deref());
    let name = set.metadata.name.as_deref().unwrap_or_default();
    match policy {
        Some("Parallel") => Vec::new(),
        _ => (ordinals(set).start..ordinal)
            .map(|number| format!("{name}-{number}"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    fn member_since(name: &str, since: Option<Instant>) -> ReadyMember {
        let name = name.to_owned();
        ReadyMember { name, since }
    }

    #[test]
    fn a_set_creates_its_members_in_order() {
        let unready = |spec: Value, ready: &[&str]| {
            let mut set = json!({"selector": {}, "serviceName": "", "template": {}});
            let fields = spec.as_object().expect("an object").clone();
            set.as_object_mut().expect("an object").extend(fields);
            let set = read(json!({"metadata": {"name": "web"}, "spec": set}));
            let ready: Vec<_> = ready.iter().map(|name| member_since(name, None)).collect();
            unready(&set, 2, &ready, Now::at(Instant::from_micros(0)))
        };
        assert_eq!(unready(json!({}), &["web-0", "web-1"]), [""; 0]);
        assert_eq!(unready(json!({}), &["web-1"]), ["web-0"]);
        assert_eq!(unready(json!({}), &[]), ["web-0", "web-1"]);
        assert_eq!(
            unready(json!({"podManagementPolicy": "Parallel"}), &[]),
            [""; 0]
        );
        assert_eq!(unready(json!({"ordinals": {"start": 1}}), &[]), ["web-1"]);
    }

    #[test]
    fn a_member_is_ready_by_its_condition_and_for_as_long_as_its_set_wants() {
        let ready = |status: &str, phase: &str, deleted: Option<&str>| {
            ReadyMember::of(&read(json!({
                "metadata": {"name": "web-0", "deletionTimestamp": deleted},
                "status": {
                    "phase": phase,
                    "conditions": [{
                        "type": "Ready", "status": status,
                        "lastTransitionTime": "1970-01-01T00:00:10Z",
                    }],
                    "containerStatuses": [{
                        "name": "main", "image": "", "imageID": "", "restartCount": 0,
                        "ready": true, "state": {"running": {}},
                    }],
                },
            })))
        };
        let at = |seconds| Instant::from_micros(0) + Span::seconds(seconds);
        let member = ready("True", "Running", None);
        assert_eq!(member, Some(member_since("web-0", Some(at(10)))));
        assert_eq!(ready("False", "Running", None), None, "of a dead node");
        assert_eq!(ready("True", "Failed", None), None);
        assert_eq!(ready("True", "Running", Some("1970-01-01T00:00:20Z")), None);

        let set = |min_ready: Option<i32>| -> StatefulSet {
            read(json!({"metadata": {"name": "web"}, "spec": {
                "selector": {}, "serviceName": "", "template": {}, "minReadySeconds": min_ready,
            }}))
        };
        let members = [member.expect("it is ready")];
        let waits =
            |set: &StatefulSet, now| !unready(set, 1, &members, Now::at(at(now))).is_empty();
        assert!(!waits(&set(None), 10));
        assert!(waits(&set(Some(30)), 39));
        assert!(!waits(&set(Some(30)), 40));
    }

    #[test]
    fn the_name_of_a_pod_shows_its_set() {
        assert_eq!(member("web-0"), Some(("web", 0)));
        assert_eq!(member("web-db-12"), Some(("web-db", 12)));
        for other in ["web", "web-7d4c", "-1", "web-"] {
            assert_eq!(member(other), None, "{other}");
        }
    }
}
