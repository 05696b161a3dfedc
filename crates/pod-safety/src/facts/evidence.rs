//! What was read, as the server sent it: of each node, of each namespace, and of the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, ResourceQuota};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};

use super::locks::Lock;
use super::node::{NodeRow, PresentNode, Zone};
use super::remediation::Remediation;
use crate::known::Known;
use crate::node_health::Heartbeat;

/// Everything that was read for the pods of a report.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// By the nodes' names.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// By the namespaces' names.
    pub namespaces: BTreeMap<String, NamespaceEvidence>,
    /// What has no namespace.
    pub cluster: Cluster,
    /// All nodes, as rows.
    pub rows: Known<Vec<NodeRow>>,
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// The Node; `None`: there is none.
    pub node: Known<Option<PresentNode>>,
    /// When a kubelet last renewed a heartbeat under its name, whether the Node was read or not.
    pub heartbeat: Known<Option<Heartbeat>>,
    /// Its maintenance Lease.
    pub lock: Known<Lock>,
    /// Whether an operator is at work on it.
    pub remediation: Known<Remediation>,
    /// How many nodes of its zone are unreachable.
    pub zone: Known<Zone>,
}

/// What was read in a namespace. What no pod needs is not read.
#[derive(Clone, Debug, Default)]
pub struct NamespaceEvidence {
    /// Its StatefulSets.
    pub stateful_sets: Known<Vec<StatefulSet>>,
    /// Its ReplicaSets.
    pub replica_sets: Known<Vec<ReplicaSet>>,
    /// Its Jobs.
    pub jobs: Known<Vec<Job>>,
    /// Its claims.
    pub claims: Known<Vec<PersistentVolumeClaim>>,
    /// The names of its pods that are ready.
    pub ready_pods: Known<Vec<String>>,
    /// Its quotas.
    pub quotas: Known<Vec<ResourceQuota>>,
    /// Its budgets.
    pub budgets: Known<Vec<PodDisruptionBudget>>,
    /// Whether the user may delete its pods.
    pub may_delete: Known<bool>,
    /// Whether the user may set their phase.
    pub may_patch_status: Known<bool>,
}

/// What was read of the cluster's volumes.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// All volumes.
    pub volumes: Known<Vec<PersistentVolume>>,
    /// All attachments.
    pub attachments: Known<Vec<VolumeAttachment>>,
    /// All drivers.
    pub drivers: Known<Vec<CSIDriver>>,
}
