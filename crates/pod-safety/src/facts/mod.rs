//! The facts that the checks examine, and how they are derived from the objects that were read.

pub mod budgets;
pub mod evidence;
pub mod locks;
pub mod members;
pub mod node;
pub mod owner;
pub mod pod;
pub mod remediation;
pub(crate) mod selectors;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub mod volumes;

pub use budgets::Budget;
pub use evidence::{Cluster, Evidence, NamespaceEvidence, NodeFacts};
pub use locks::{FencingProgress, Lock, LockNeed, lasts_for_a_request};
pub use members::ReadyMember;
pub use node::{Fenced, NodeRow, Nodes, PresentNode, Zone};
pub use owner::{Owner, Promise, Siblings};
pub use pod::{PodConditions, PodSnapshot};
pub use remediation::Remediation;
pub use volumes::{DeletedClaim, Volume};

use k8s_openapi::api::core::v1::Pod;

use crate::known::Known;

/// All facts that the checks of a pod examine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The pod itself.
    pub pod: PodSnapshot,
    /// Its node.
    pub node: NodeFacts,
    /// What recreates it.
    pub owner: Owner,
    /// Its volumes that other nodes can reach, or for which this is unknown.
    pub volumes: Vec<Volume>,
    /// Those of its claims that are being deleted.
    pub deleted_claims: Known<Vec<DeletedClaim>>,
    /// The names of its volumes that are created for it alone and deleted with it.
    pub ephemeral: Vec<String>,
    /// The budgets that cover it.
    pub budgets: Known<Vec<Budget>>,
    /// Whether the user may delete it.
    pub may_delete: Known<bool>,
    /// Whether the user may set its phase. Read only if its Job waits for that phase.
    pub may_patch_status: Known<bool>,
}

impl Facts {
    /// The facts about `pod`, derived from `evidence`.
    #[must_use]
    pub fn of(pod: &Pod, evidence: &Evidence) -> Self {
        let snapshot = PodSnapshot::of(pod);
        let node = evidence.nodes.get(&snapshot.node);
        let unread = NamespaceEvidence::default();
        let namespace = evidence.namespaces.get(&snapshot.namespace);
        let namespace = namespace.unwrap_or(&unread);
        Self {
            node: node.cloned().unwrap_or_default(),
            volumes: volumes::of(pod, evidence),
            deleted_claims: volumes::deleted_claims(pod, evidence),
            ephemeral: volumes::ephemeral(pod),
            owner: Owner::of(pod, namespace),
            budgets: budgets::covering(pod, &namespace.budgets),
            may_delete: namespace.may_delete.clone(),
            may_patch_status: namespace.may_patch_status.clone(),
            pod: snapshot,
        }
    }
}
