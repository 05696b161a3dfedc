//! Plain facts, as the checks look at them, and how they follow from what was read.

pub mod budgets;
pub mod evidence;
pub mod locks;
pub mod node;
pub mod owner;
pub mod pod;
pub mod quotas;
pub mod remediation;
pub mod replacement;
pub(crate) mod selectors;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub mod volumes;

pub use budgets::Budget;
pub use evidence::{Cluster, Evidence, NamespaceEvidence, NodeEvidence};
pub use locks::Lock;
pub use node::{Fenced, NodeRow, NodeSnapshot, Nodes, PresentNode, Zone};
pub use owner::{Owner, Promise, Siblings};
pub use pod::{PodConditions, PodSnapshot};
pub use remediation::Remediation;
pub use replacement::Obstacle;
pub use volumes::Volume;

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::Now;

use crate::known::Known;
use crate::node_health::Heartbeat;

/// All that the checks of a pod look at.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The pod itself.
    pub pod: PodSnapshot,
    /// Its node.
    pub node: Known<NodeSnapshot>,
    /// When a kubelet last renewed a heartbeat under the node's name, whether the Node was read or not.
    pub heartbeat: Known<Option<Heartbeat>>,
    /// The node's maintenance Lease.
    pub lock: Known<Lock>,
    /// Whether an operator is at work on the node.
    pub remediation: Known<Remediation>,
    /// How many nodes of the node's zone are unreachable.
    pub zone: Known<Zone>,
    /// What recreates it.
    pub owner: Owner,
    /// Its volumes that other nodes can reach, or of which nobody knows whether they can.
    pub volumes: Vec<Volume>,
    /// What keeps its replacement from coming or running.
    pub obstacles: Vec<Obstacle>,
    /// The budgets that cover it.
    pub budgets: Known<Vec<Budget>>,
    /// Whether the user may delete it.
    pub may_delete: Known<bool>,
    /// Whether the user may set its phase. Read only if its Job waits for it.
    pub may_patch_status: Known<bool>,
}

/// All that the checks of a Node look at.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// The Node.
    pub node: Known<NodeSnapshot>,
    /// Its maintenance Lease.
    pub lock: Known<Lock>,
    /// Whether an operator is at work on it.
    pub remediation: Known<Remediation>,
    /// How many nodes of its zone are unreachable.
    pub zone: Known<Zone>,
    /// Whether the user may delete it.
    pub may_delete: Known<bool>,
}

impl Facts {
    /// The facts about `pod` in what was read, at `now`.
    #[must_use]
    pub fn of(pod: &Pod, evidence: &Evidence, now: Now) -> Self {
        let snapshot = PodSnapshot::of(pod);
        let (no_node, no_namespace) = (NodeEvidence::default(), NamespaceEvidence::default());
        let node = evidence.nodes.get(&snapshot.node).unwrap_or(&no_node);
        let namespace = evidence.namespaces.get(&snapshot.namespace);
        let namespace = namespace.unwrap_or(&no_namespace);
        let owner = Owner::of(pod, namespace);
        Self {
            node: node.snapshot(),
            heartbeat: node.heartbeat.clone(),
            lock: node.lock.clone(),
            remediation: node.remediation.clone(),
            zone: node.zone.clone(),
            volumes: volumes::of(pod, evidence),
            obstacles: replacement::of(pod, &owner, evidence, now),
            owner,
            budgets: budgets::covering(pod, &namespace.budgets),
            may_delete: namespace.may_delete.clone(),
            may_patch_status: namespace.may_patch_status.clone(),
            pod: snapshot,
        }
    }
}

impl NodeFacts {
    /// The facts about a Node in what was read, and whether the user may delete it.
    #[must_use]
    pub fn of(read: &NodeEvidence, may_delete: Known<bool>) -> Self {
        Self {
            node: read.snapshot(),
            lock: read.lock.clone(),
            remediation: read.remediation.clone(),
            zone: read.zone.clone(),
            may_delete,
        }
    }
}
