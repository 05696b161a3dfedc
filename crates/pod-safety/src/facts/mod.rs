//! The facts that the checks examine, and how they are derived from the objects that were read.

pub mod budgets;
pub mod evidence;
pub mod job;
pub mod locks;
pub mod members;
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
pub use evidence::{Cluster, DeletedTogether, Evidence, NamespaceEvidence, NodeFacts};
pub use job::{Failing, JobFailure};
pub use locks::{FencingProgress, Lock, LockNeed, lasts_for_a_request};
pub use members::ReadyMember;
pub use node::{Fenced, NodeRow, Nodes, PresentNode, Zone};
pub use owner::{Owner, Promise, Siblings};
pub use pod::{PodConditions, PodSnapshot};
pub use remediation::Remediation;
pub use replacement::{Blocked, Obstacle};
pub use volumes::{DeletedClaim, Volume};

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::Now;

use crate::bugs::{self, Bug};
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
    /// What fails if its Job counts it as failed.
    pub job_failure: Option<JobFailure>,
    /// Its volumes that other nodes can reach, or for which this is unknown.
    pub volumes: Vec<Volume>,
    /// Those of its claims that are being deleted.
    pub deleted_claims: Known<Vec<DeletedClaim>>,
    /// The names of its volumes that are created for it alone and deleted with it.
    pub ephemeral: Vec<String>,
    /// What prevents its replacement from being created or from running.
    pub obstacles: Vec<Obstacle>,
    /// The budgets that cover it.
    pub budgets: Known<Vec<Budget>>,
    /// Whether the user may delete it.
    pub may_delete: Known<bool>,
    /// Whether the user may set its phase. Read only if its Job waits for that phase.
    pub may_patch_status: Known<bool>,
}

impl Facts {
    /// The facts about `pod`, derived from `evidence` at `now`.
    #[must_use]
    pub fn of(pod: &Pod, evidence: &Evidence, now: Now) -> Self {
        let snapshot = PodSnapshot::of(pod);
        let node = evidence.nodes.get(&snapshot.node);
        let unread = NamespaceEvidence::default();
        let namespace = evidence.namespaces.get(&snapshot.namespace);
        let namespace = namespace.unwrap_or(&unread);
        let owner = Owner::of(pod, namespace);
        Self {
            node: node.cloned().unwrap_or_default(),
            job_failure: job::failure(pod, &evidence.deleted_together, namespace),
            volumes: volumes::of(pod, evidence),
            deleted_claims: volumes::deleted_claims(pod, evidence),
            ephemeral: volumes::ephemeral(pod),
            obstacles: replacement::of(pod, &owner, evidence, now),
            owner,
            budgets: budgets::covering(pod, &namespace.budgets),
            may_delete: namespace.may_delete.clone(),
            may_patch_status: namespace.may_patch_status.clone(),
            pod: snapshot,
        }
    }

    /// Whether the replacement is created only once the pod is gone. Other controllers create it as soon as
    /// the pod is terminating.
    #[must_use]
    pub fn is_replaced_once_gone(&self) -> bool {
        let Owner::Controller { promise, .. } = &self.owner else {
            return false;
        };
        match promise {
            Known::Yes(Promise::OneOfEachName | Promise::NoneBeforeTheEnd) => true,
            // The replacement is for the same node. Its pods don't tolerate the taints of a node that is not
            // ready or out of service.
            Known::Yes(Promise::OnePerNode) => {
                bugs::active(Bug::DaemonPodOnUnfitNode)
                    || matches!(&self.node.node, Known::Yes(Some(node)) if node.is_fit())
            }
            // What waits is another controller: the next ReplicaSet of a Deployment, or the next Job.
            Known::Yes(
                Promise::None
                | Promise::NextRevisionWaits
                | Promise::EndOfJobWaits
                | Promise::Perhaps,
            )
            | Known::Unknown(_) => false,
        }
    }
}
