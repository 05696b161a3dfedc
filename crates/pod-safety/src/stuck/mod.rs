//! What is stuck on unhealthy nodes: pods that do not end or may no longer run, replacements that wait for
//! them, and volumes that stay attached.

pub mod attachment;

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1 as core;

pub use self::attachment::{Attachment, Orphan, orphan};
use crate::controller::{controller, shown_as};
use crate::facts::source::claims;
use crate::node_health::Health;
use crate::why::{Diagnosis, State, Unread};

/// A pod that is stuck, or that waits for a stuck pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its controller as `Kind/name`.
    pub owner: Option<String>,
    /// The health of its node, if it has one and its health was read.
    pub health: Option<Health>,
    /// Why it is stuck.
    pub found: Diagnosis,
}

impl StuckPod {
    pub(crate) fn new(pod: &core::Pod, health: Option<Health>, found: Diagnosis) -> Self {
        Self {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            owner: controller(&pod.metadata).map(shown_as),
            health,
            found,
        }
    }
}

/// A volume that stays attached to a node that is not ready, although no pod needs it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckVolume {
    /// The attachment.
    pub attachment: Attachment,
    /// The health of its node.
    pub health: Health,
    /// Why no pod needs it there.
    pub orphan: Orphan,
}

/// Everything that is stuck on some nodes.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The nodes that are not ready, and nodes that are gone but still have pods or volumes.
    pub nodes: BTreeMap<String, Health>,
    /// The stuck pods, by node, namespace and name.
    pub pods: Vec<StuckPod>,
    /// The Pending pods that may wait for the stuck pods, by namespace and name.
    pub waiting: Vec<StuckPod>,
    /// The stuck volumes, by node and name.
    pub volumes: Vec<StuckVolume>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

impl Stuck {
    /// Whether `node` does not exist and nothing is left of it.
    #[must_use]
    pub fn is_of_nothing(&self, node: &str) -> bool {
        self.nodes.get(node) == Some(&Health::Gone)
            && self.pods.is_empty()
            && self.volumes.is_empty()
    }
}

/// Whether a pod in this state is stuck on a node with this health. On a ready node, only pods whose deletion
/// is overdue are stuck.
pub(crate) fn is_stuck(state: State, health: &Health) -> bool {
    match state {
        State::Terminating { .. } | State::Finalizing { .. } => true,
        State::Finished => false,
        _ => *health != Health::Ready,
    }
}

/// The resources that other pods may be waiting for, because stuck pods have them.
#[derive(Debug, Default)]
pub(crate) struct StuckResources {
    /// The uids of the stuck pods' controllers.
    controllers: HashSet<String>,
    /// The stuck pods' claims, by namespace and name.
    claims: HashSet<(String, String)>,
}

impl StuckResources {
    pub(crate) fn of<'a>(stuck: impl Iterator<Item = &'a core::Pod>) -> Self {
        let mut resources = Self::default();
        for pod in stuck {
            let owner = controller(&pod.metadata);
            { &mut resources.controllers }.extend(owner.map(|owner| owner.uid.clone()));
            resources.claims.extend(own_claims(pod));
        }
        resources
    }

    /// Whether `pod` may be waiting for a stuck pod, to replace it or to use the same claim.
    pub(crate) fn is_needed_by(&self, pod: &core::Pod) -> bool {
        let owner = controller(&pod.metadata);
        owner.is_some_and(|owner| self.controllers.contains(&owner.uid))
            || own_claims(pod).any(|claim| self.claims.contains(&claim))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.controllers.is_empty() && self.claims.is_empty()
    }
}

/// The claims of `pod` by namespace and name.
pub(crate) fn own_claims(pod: &core::Pod) -> impl Iterator<Item = (String, String)> + '_ {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    claims(pod).map(move |claim| (namespace.clone(), claim))
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;
    use serde_json::{Value, json};

    use super::*;

    fn pod(controller: &str, claim: &str) -> core::Pod {
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        let volumes: &[Value] = if claim.is_empty() { &[] } else { &[volume] };
        let pod = json!({
            "metadata": {"name": "web", "namespace": "shop", "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": controller,
                "controller": true,
            }]},
            "spec": {"containers": [], "volumes": volumes},
        });
        serde_json::from_value(pod).expect("a Pod")
    }

    #[test]
    fn a_live_kubelet_ends_pods_in_time() {
        let at = Instant::from_micros(0);
        for (state, on_ready, on_other) in [
            (State::Pending, false, true),
            (State::Running, false, true),
            (State::Finished, false, false),
            (State::Ending { until: at }, false, true),
            (State::Terminating { since: at }, true, true),
            (State::Finalizing { since: at }, true, true),
        ] {
            assert_eq!(is_stuck(state, &Health::Ready), on_ready, "{state:?}");
            assert_eq!(is_stuck(state, &Health::Gone), on_other, "{state:?}");
        }
    }

    #[test]
    fn a_replacement_has_the_same_controller_or_the_same_claim() {
        let stuck = [pod("1", "data")];
        let resources = StuckResources::of(stuck.iter());
        for (controller, claim, expected) in [
            ("1", "", true),
            ("2", "data", true),
            ("2", "", false),
            ("2", "other", false),
        ] {
            assert_eq!(resources.is_needed_by(&pod(controller, claim)), expected);
        }
        let mut elsewhere = pod("2", "data");
        elsewhere.metadata.namespace = Some("bank".to_owned());
        assert!(!resources.is_needed_by(&elsewhere));
    }
}
