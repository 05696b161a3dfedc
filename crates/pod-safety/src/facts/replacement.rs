//! Why the replacement of a pod would not be created, or would not run.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, Pod, VolumeNodeAffinity,
};

use super::evidence::{Evidence, NamespaceEvidence};
use super::node::NodeRow;
use super::owner::{Kind, controller};
use super::source::{Source, sources};

/// An obstacle for the replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The set has fewer members than the number of the pod.
    Surplus {
        /// The set, and its size.
        set: String,
    },
    /// The set creates its members in order, and these before it are not ready.
    Order {
        /// Their names.
        unready: Vec<String>,
    },
    /// No other node that is ready can reach these volumes.
    Bound {
        /// Their claims.
        claims: Vec<String>,
    },
}

/// The obstacles for the replacement of `pod`, as far as they are known.
pub(super) fn of(pod: &Pod, evidence: &Evidence) -> Vec<Obstacle> {
    let kind = controller(&pod.metadata).map(Kind::of);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let (Some(kind), Some(namespace)) = (kind, evidence.namespaces.get(namespace)) else {
        return Vec::new();
    };
    let mut obstacles = Vec::new();
    if kind == Kind::StatefulSet {
        obstacles.extend(of_member(pod, namespace));
    }
    let claims = match kind {
        // It comes back to the same node.
        Kind::DaemonSet => Vec::new(),
        _ => bound_claims(pod, namespace, evidence),
    };
    if !claims.is_empty() {
        obstacles.push(Obstacle::Bound { claims });
    }
    obstacles
}

/// The number of a member of a StatefulSet.
pub(crate) fn ordinal(pod: &Pod) -> Option<i32> {
    let set = controller(&pod.metadata).filter(|owner| Kind::of(owner) == Kind::StatefulSet)?;
    let name = pod.metadata.name.as_deref()?;
    name.strip_prefix(&*set.name)?
        .strip_prefix('-')?
        .parse()
        .ok()
}

/// Of a member of a StatefulSet: `processReplica` in Kubernetes' stateful_set_control.go.
fn of_member(pod: &Pod, namespace: &NamespaceEvidence) -> Option<Obstacle> {
    let reference = controller(&pod.metadata)?;
    let ordinal = ordinal(pod)?;
    let sets = namespace.stateful_sets.yes()?;
    let is_it = |set: &&StatefulSet| set.metadata.name.as_ref() == Some(&reference.name);
    let spec = sets.iter().find(is_it)?.spec.as_ref()?;
    let start = spec.ordinals.as_ref().and_then(|from| from.start);
    let (start, replicas) = (start.unwrap_or(0), spec.replicas.unwrap_or(1));
    let name = &reference.name;
    if !(start..start.saturating_add(replicas)).contains(&ordinal) {
        let set = format!("StatefulSet/{name} ({replicas} replicas from {name}-{start})");
        return Some(Obstacle::Surplus { set });
    }
    if spec.pod_management_policy.as_deref() == Some("Parallel") {
        return None;
    }
    let ready = namespace.ready_pods.yes()?;
    let before = (start..ordinal).map(|number| format!("{name}-{number}"));
    let unready: Vec<String> = before.filter(|name| !ready.contains(name)).collect();
    (!unready.is_empty()).then_some(Obstacle::Order { unready })
}

/// The claims of `pod` whose volumes no other node that is ready can reach.
fn bound_claims(pod: &Pod, namespace: &NamespaceEvidence, evidence: &Evidence) -> Vec<String> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let (Some(claims), Some(volumes), Some(rows)) = (
        namespace.claims.yes(),
        evidence.cluster.volumes.yes(),
        evidence.rows.yes(),
    ) else {
        return Vec::new();
    };
    let others = || {
        rows.iter()
            .filter(|row| row.is_ready && Some(&*row.name) != node)
    };
    let is_bound = |name: &String| {
        let claim = claims
            .iter()
            .find(|claim| claim.metadata.name.as_ref() == Some(name));
        let volume = claim.and_then(|claim| claim.spec.as_ref()?.volume_name.as_ref());
        let volume = volumes
            .iter()
            .find(|one| volume.is_some() && one.metadata.name.as_ref() == volume);
        let affinity = volume.and_then(|volume| volume.spec.as_ref()?.node_affinity.as_ref());
        affinity.is_some_and(|affinity| !others().any(|row| reaches(row, affinity)))
    };
    let names = sources(pod).filter_map(|source| match source {
        Source::Claim(name) => Some(name),
        _ => None,
    });
    names.filter(is_bound).collect()
}

/// Whether a node can reach a volume: one of the terms fits.
fn reaches(row: &NodeRow, affinity: &VolumeNodeAffinity) -> bool {
    let terms = affinity.required.iter();
    terms
        .flat_map(|required| &required.node_selector_terms)
        .any(|term| fits(row, term))
        || affinity.required.is_none()
}

fn fits(row: &NodeRow, term: &NodeSelectorTerm) -> bool {
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    // A term without any requirement fits nothing.
    !(labels.is_empty() && fields.is_empty())
        && labels
            .iter()
            .all(|one| holds(one, row.labels.get(&one.key)))
        && fields.iter().all(|one| holds(one, Some(&row.name)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_among = value.is_some_and(|value| values.contains(value));
    let compared = || {
        let bound = values.first()?.parse::<i64>().ok()?;
        Some(value?.parse::<i64>().ok()?.cmp(&bound))
    };
    match &*requirement.operator {
        "In" => is_among,
        "NotIn" => !is_among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared() == Some(std::cmp::Ordering::Greater),
        "Lt" => compared() == Some(std::cmp::Ordering::Less),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::Cluster;
    use crate::known::Known;

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

    /// What is in the way of `web-2` of a set, with a volume that these nodes reach.
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
            ready_pods: Known::Yes(ready.iter().map(|&name| name.to_owned()).collect()),
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
        of(&read(pod), &evidence)
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
}
