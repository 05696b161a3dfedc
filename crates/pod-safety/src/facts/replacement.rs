//! Why the replacement of a pod would not be created or would not run.

use std::collections::BTreeSet;
use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::{Now, Span};

use super::evidence::{Evidence, NamespaceEvidence};
use super::members::ReadyMember;
use super::owner::{Owner, Promise};
use super::pod::{namespace, node_name};
use super::quotas::{self, Full};
use super::selectors::{is_limited, is_usable_on};
use super::source::{Source, sources};
use crate::controller::{Kind, controller};
use crate::known::Known;

/// What prevents the replacement of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The StatefulSet is being deleted.
    SetEnding {
        /// The set.
        set: String,
    },
    /// The StatefulSet is too small to recreate this member.
    Surplus {
        /// The set and its size.
        set: String,
    },
    /// The set creates its members in order, and earlier members are not ready.
    Order {
        /// The names of the earlier members.
        unready: Vec<String>,
    },
    /// These volumes can be used on no other ready node.
    Bound {
        /// The claims of these volumes.
        claims: Vec<String>,
    },
    /// A quota has no room for the replacement.
    Quota(Full),
}

/// The known obstacles for the replacement of `pod`, which has this `owner`.
pub(super) fn of(pod: &Pod, owner: &Owner, evidence: &Evidence, now: Now) -> Vec<Obstacle> {
    let kind = controller(&pod.metadata).map(Kind::of);
    let (Some(kind), Some(namespace)) = (kind, evidence.namespaces.get(namespace(pod))) else {
        return Vec::new();
    };
    let mut obstacles = Vec::new();
    if kind == Kind::StatefulSet {
        obstacles.extend(of_member(pod, namespace, now));
    }
    let claims = match kind {
        // The replacement runs on the same node.
        Kind::DaemonSet => Vec::new(),
        _ => bound_claims(pod, namespace, evidence),
    };
    if !claims.is_empty() {
        obstacles.push(Obstacle::Bound { claims });
    }
    // A controller without such a promise has already created the replacement, and a Job that is ending
    // creates none.
    if let Owner::Controller {
        promise: Known::Yes(promise),
        ..
    } = owner
        && !matches!(promise, Promise::None | Promise::EndOfJobWaits)
    {
        let quotas = namespace.quotas.value().into_iter();
        let full = quotas.flat_map(|quotas| quotas::full(pod, quotas, now));
        obstacles.extend(full.map(Obstacle::Quota));
    }
    obstacles
}

/// A pod that leaves its node, and what prevents its replacement from being created or from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub name: String,
    /// The obstacles; never empty.
    pub obstacles: Vec<Obstacle>,
}

impl Blocked {
    /// Whether it is about the pod of this name.
    #[must_use]
    pub fn is_for(&self, pod: &Pod) -> bool {
        namespace(pod) == self.namespace && pod.metadata.name.as_ref() == Some(&self.name)
    }
}

/// The obstacles for the replacements of `pods`, which leave their node together. A member of a set waits for
/// the members before it only if something prevents those from coming back.
pub(crate) fn of_leaving(pods: &[&Pod], evidence: &Evidence, now: Now) -> Vec<Blocked> {
    let mut pods = pods.to_vec();
    pods.sort_by_key(|pod| ordinal(pod));
    let mut blocked: Vec<Blocked> = Vec::new();
    let mut coming: BTreeSet<(&str, &str)> = BTreeSet::new();
    for pod in pods {
        let (namespace, name) = (namespace(pod), pod.metadata.name.as_deref());
        let name = name.unwrap_or_default();
        let owner = { evidence.namespaces.get(namespace) }
            .map_or(Owner::Nothing, |evidence| Owner::of(pod, evidence));
        let mut obstacles = of(pod, &owner, evidence, now);
        for obstacle in &mut obstacles {
            if let Obstacle::Order { unready } = obstacle {
                unready.retain(|before| !coming.contains(&(namespace, &**before)));
            }
        }
        obstacles.retain(
            |obstacle| !matches!(obstacle, Obstacle::Order { unready } if unready.is_empty()),
        );
        if obstacles.is_empty() {
            coming.insert((namespace, name));
        } else {
            blocked.push(Blocked {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                obstacles,
            });
        }
    }
    blocked
}

/// The name of the StatefulSet and the ordinal in a pod's name, if the name has that form.
pub(crate) fn member(pod: &str) -> Option<(&str, i32)> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?)).filter(|(_, ordinal)| *ordinal >= 0 && !set.is_empty())
}

/// The ordinal of a pod of a StatefulSet.
pub(crate) fn ordinal(pod: &Pod) -> Option<i32> {
    let set = controller(&pod.metadata).filter(|owner| Kind::of(owner) == Kind::StatefulSet)?;
    let (name, ordinal) = member(pod.metadata.name.as_deref()?)?;
    (name == set.name).then_some(ordinal)
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

fn of_member(pod: &Pod, namespace: &NamespaceEvidence, now: Now) -> Option<Obstacle> {
    let name = &controller(&pod.metadata)?.name;
    let ordinal = ordinal(pod)?;
    let mut sets = namespace.stateful_sets.value()?.iter();
    let set = sets.find(|set| set.metadata.name.as_ref() == Some(name))?;
    if set.metadata.deletion_timestamp.is_some() {
        let set = format!("StatefulSet/{name}");
        return Some(Obstacle::SetEnding { set });
    }
    let ordinals = ordinals(set);
    if !ordinals.contains(&ordinal) {
        let (replicas, start) = (ordinals.len(), ordinals.start);
        let set = format!("StatefulSet/{name} ({replicas} replicas from {name}-{start})");
        return Some(Obstacle::Surplus { set });
    }
    let ready = namespace.ready_members.value()?;
    let unready = unready(set, ordinal, ready, now);
    (!unready.is_empty()).then_some(Obstacle::Order { unready })
}

/// The claims of `pod` whose volumes can be used on no other ready node.
fn bound_claims(pod: &Pod, namespace: &NamespaceEvidence, evidence: &Evidence) -> Vec<String> {
    let (Some(claims), Some(volumes), Some(rows)) = (
        namespace.claims.value(),
        evidence.cluster.volumes.value(),
        evidence.rows.value(),
    ) else {
        return Vec::new();
    };
    let others = || {
        rows.iter()
            .filter(|row| row.is_ready && row.name != node_name(pod))
    };
    let is_bound = |name: &String| {
        let claim = claims
            .iter()
            .find(|claim| claim.metadata.name.as_ref() == Some(name));
        let volume = claim.and_then(|claim| claim.spec.as_ref()?.volume_name.as_ref());
        let volume = volumes
            .iter()
            .find(|one| volume.is_some() && one.metadata.name.as_ref() == volume);
        volume.is_some_and(|volume| {
            is_limited(volume) && !others().any(|row| is_usable_on(volume, &row.labels))
        })
    };
    let names = sources(pod).filter_map(|source| match source {
        Source::Claim(name) => Some(name),
        _ => None,
    });
    names.filter(is_bound).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{Cluster, NodeRow};
    use maintenance_lease::protocol::Instant;

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    fn row(name: &str, is_ready: bool) -> NodeRow {
        NodeRow {
            name: name.to_owned(),
            is_ready,
            is_cordoned: false,
            labels: BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]),
            is_annotated: false,
        }
    }

    fn member_since(name: &str, since: Option<Instant>) -> ReadyMember {
        let name = name.to_owned();
        ReadyMember { name, since }
    }

    /// The obstacles for `web-2` of a set whose volume can be used on the nodes in `reached`.
    fn obstacles(spec: &Value, ready: &[&str], reached: &[&str]) -> Vec<Obstacle> {
        let mut set = json!({"selector": {}, "serviceName": "", "template": {}});
        set.as_object_mut()
            .expect("an object")
            .extend(spec.as_object().expect("one").clone());
        let namespace = NamespaceEvidence {
            stateful_sets: Known::Yes(vec![read(
                json!({"metadata": {"name": "web"}, "spec": set}),
            )]),
            claims: Known::Yes(vec![read(
                json!({"metadata": {"name": "data"}, "spec": {"volumeName": "pv"}}),
            )]),
            ready_members: Known::Yes(ready.iter().map(|name| member_since(name, None)).collect()),
            ..NamespaceEvidence::default()
        };
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": reached},
            ]}],
        }}}});
        let evidence = Evidence {
            namespaces: [("shop".to_owned(), namespace)].into(),
            cluster: Cluster {
                volumes: Known::Yes(vec![read(volume)]),
                ..Cluster::default()
            },
            rows: Known::Yes(vec![
                row("worker-1", true),
                row("worker-2", true),
                row("worker-3", false),
            ]),
            ..Evidence::default()
        };
        let pod = json!({
            "metadata": {"name": "web-2", "namespace": "shop", "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u",
                "controller": true,
            }]},
            "spec": {"nodeName": "worker-1", "containers": [], "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            ]},
        });
        let now = Now::at(Instant::from_micros(0));
        of(&read(pod), &Owner::Nothing, &evidence, now)
    }

    #[test]
    fn a_member_comes_back_if_its_set_has_it_and_the_members_before_it_are_ready() {
        let all = ["worker-1", "worker-2"];
        let surplus = |size: &str| {
            let set = format!("StatefulSet/web ({size})");
            vec![Obstacle::Surplus { set }]
        };
        let order = |unready: &[&str]| {
            let unready = unready.iter().map(|&name| name.to_owned()).collect();
            vec![Obstacle::Order { unready }]
        };
        let both = ["web-0", "web-1"];
        for (spec, ready, expected) in [
            (json!({"replicas": 3}), &both[..], vec![]),
            (json!({"replicas": 3}), &["web-1"], order(&["web-0"])),
            (json!({"replicas": 3}), &[], order(&["web-0", "web-1"])),
            (
                json!({"replicas": 3, "podManagementPolicy": "Parallel"}),
                &[],
                vec![],
            ),
            (
                json!({"replicas": 2}),
                &both,
                surplus("2 replicas from web-0"),
            ),
            (
                json!({"replicas": 2, "ordinals": {"start": 1}}),
                &["web-1"],
                vec![],
            ),
            (
                json!({"replicas": 2, "ordinals": {"start": 3}}),
                &[],
                surplus("2 replicas from web-3"),
            ),
        ] {
            assert_eq!(obstacles(&spec, ready, &all), expected, "{spec} {ready:?}");
        }
    }

    #[test]
    fn a_volume_that_no_other_ready_node_reaches_keeps_the_replacement_pending() {
        let bound = vec![Obstacle::Bound {
            claims: vec!["data".to_owned()],
        }];
        for (reached, expected) in [
            (&["worker-1"][..], bound.clone()),
            (&["worker-1", "worker-3"], bound),
            (&["worker-2"], vec![]),
        ] {
            let spec = json!({"replicas": 3});
            assert_eq!(
                obstacles(&spec, &["web-0", "web-1"], reached),
                expected,
                "{reached:?}"
            );
        }
    }

    /// Members that leave one node come back in order, unless something prevents one of them.
    #[test]
    fn members_that_leave_together_wait_only_for_those_that_stay_away() {
        let set = json!({"metadata": {"name": "web"}, "spec": {
            "selector": {}, "serviceName": "", "template": {}, "replicas": 3,
        }});
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["worker-1"]},
            ]}],
        }}}});
        let namespace = NamespaceEvidence {
            stateful_sets: Known::Yes(vec![read(set)]),
            claims: Known::Yes(vec![read(
                json!({"metadata": {"name": "data"}, "spec": {"volumeName": "pv"}}),
            )]),
            ready_members: Known::Yes(Vec::new()),
            ..NamespaceEvidence::default()
        };
        let evidence = Evidence {
            namespaces: [("shop".to_owned(), namespace)].into(),
            cluster: Cluster {
                volumes: Known::Yes(vec![read(volume)]),
                ..Cluster::default()
            },
            rows: Known::Yes(vec![row("worker-1", false), row("worker-2", true)]),
            ..Evidence::default()
        };
        let member = |number: u32, claim: &str| -> Pod {
            read(json!({
                "metadata": {"name": format!("web-{number}"), "namespace": "shop", "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u",
                    "controller": true,
                }]},
                "spec": {"nodeName": "worker-1", "containers": [], "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": claim}},
                ]},
            }))
        };
        let blocked = |pods: &[Pod]| -> Vec<(String, Vec<Obstacle>)> {
            let pods: Vec<&Pod> = pods.iter().collect();
            let now = Now::at(Instant::from_micros(0));
            let blocked = of_leaving(&pods, &evidence, now).into_iter();
            blocked.map(|one| (one.name, one.obstacles)).collect()
        };
        let order = |name: &str, unready: &[&str]| {
            let unready = unready.iter().map(|&name| name.to_owned()).collect();
            (name.to_owned(), vec![Obstacle::Order { unready }])
        };
        let all = [2, 1, 0].map(|number| member(number, "free"));
        assert_eq!(blocked(&all), []);
        let bound = Obstacle::Bound {
            claims: vec!["data".to_owned()],
        };
        let first_is_bound = [member(2, "free"), member(1, "free"), member(0, "data")];
        assert_eq!(
            blocked(&first_is_bound),
            [
                ("web-0".to_owned(), vec![bound]),
                order("web-1", &["web-0"]),
                order("web-2", &["web-0", "web-1"]),
            ]
        );
        // The first member is on another node, and not ready.
        let without_first = [member(1, "free"), member(2, "free")];
        assert_eq!(
            blocked(&without_first),
            [
                order("web-1", &["web-0"]),
                order("web-2", &["web-0", "web-1"])
            ]
        );
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
