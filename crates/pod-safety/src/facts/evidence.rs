//! The objects that were read: for each node, for each namespace, and for the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};

use super::locks::Lock;
use super::node::{PresentNode, Zone};
use super::remediation::Remediation;
use crate::known::Known;
use crate::node_health::Heartbeat;

/// Everything that was read for the pods of a report.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The facts about nodes, by node name.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// The objects of namespaces, by namespace.
    pub namespaces: BTreeMap<String, NamespaceEvidence>,
    /// The objects that have no namespace.
    pub cluster: Cluster,
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// The Node; `None` if it does not exist.
    pub node: Known<Option<PresentNode>>,
    /// When a kubelet last renewed the heartbeat with this node's name. It is known even if the Node could
    /// not be read.
    pub heartbeat: Known<Option<Heartbeat>>,
    /// The state of its maintenance lock.
    pub lock: Known<Lock>,
    /// Whether an operator works on it.
    pub remediation: Known<Remediation>,
    /// How many nodes of its zone are unreachable.
    pub zone: Known<Zone>,
}

/// The objects that were read in a namespace. Kinds that no pod needs are not read.
#[derive(Clone, Debug, Default)]
pub struct NamespaceEvidence {
    /// Its StatefulSets.
    pub stateful_sets: Known<Vec<StatefulSet>>,
    /// Its ReplicaSets.
    pub replica_sets: Known<Vec<ReplicaSet>>,
    /// Its Deployments. Read only if a pod belongs to a ReplicaSet that was scaled down.
    pub deployments: Known<Vec<Deployment>>,
    /// Its DaemonSets.
    pub daemon_sets: Known<Vec<DaemonSet>>,
    /// Its ReplicationControllers.
    pub replication_controllers: Known<Vec<ReplicationController>>,
    /// Its Jobs.
    pub jobs: Known<Vec<Job>>,
    /// Its PersistentVolumeClaims.
    pub claims: Known<Vec<PersistentVolumeClaim>>,
    /// Its PodDisruptionBudgets.
    pub budgets: Known<Vec<PodDisruptionBudget>>,
    /// Whether the user may delete its pods.
    pub may_delete: Known<bool>,
    /// Whether the user may set the phase of its pods.
    pub may_patch_status: Known<bool>,
}

/// The objects that describe the cluster's volumes.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// All PersistentVolumes.
    pub volumes: Known<Vec<PersistentVolume>>,
    /// All VolumeAttachments.
    pub attachments: Known<Vec<VolumeAttachment>>,
    /// All CSIDrivers.
    pub drivers: Known<Vec<CSIDriver>>,
}
