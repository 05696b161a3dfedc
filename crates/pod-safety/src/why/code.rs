//! The reasons why an object is stuck, and its state, as codes for programs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Reason, State};
use crate::node_health::Health;

/// How far an object got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum StuckState {
    /// It does not exist.
    Missing,
    /// A pod without a node, one whose containers have not all started, or a claim without a volume.
    Pending,
    /// A pod whose containers were started.
    Running,
    /// A pod that has ended by itself.
    Finished,
    /// A claim that has its volume.
    Bound,
    /// A claim whose volume no longer exists.
    Lost,
    /// A namespace that is not being deleted.
    Active,
    /// It is being deleted, and its grace period has not ended.
    Ending,
    /// It is being deleted, and should be gone by now.
    Terminating,
    /// It has ended or was never on a node, and only finalizers keep the object.
    HeldByFinalizer,
}

impl From<State> for StuckState {
    fn from(state: State) -> Self {
        match state {
            State::Missing => Self::Missing,
            State::Pending => Self::Pending,
            State::Running => Self::Running,
            State::Finished => Self::Finished,
            State::Bound => Self::Bound,
            State::Lost => Self::Lost,
            State::Active => Self::Active,
            State::Ending { .. } => Self::Ending,
            State::Terminating { .. } => Self::Terminating,
            State::Finalizing { .. } => Self::HeldByFinalizer,
        }
    }
}

/// Why an object gets no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum StuckCode {
    /// The grace period of the pod has not ended.
    GracePeriod,
    /// The node of the pod is ready.
    NodeReady,
    /// The node of the pod is not ready.
    NodeNotReady,
    /// The kubelet of the node no longer reports.
    NodeUnreachable,
    /// The node has the taint out-of-service.
    NodeOutOfService,
    /// The node was fenced, and has restarted.
    NodeFenced,
    /// The node has the taint out-of-service, and its kubelet reports.
    NodeOutOfServiceKubeletAlive,
    /// The node does not exist.
    NodeGone,
    /// A taint of the node evicts the pod.
    Evicted,
    /// The pod tolerates the taints of its node without a limit.
    NeverEvicted,
    /// No taint of the node evicts the pod.
    Unevicted,
    /// Containers still run after the grace period.
    ContainersRunning,
    /// The kubelet has not unmounted the volumes yet.
    Unmount,
    /// The kubelet has not reported that the pod ended.
    Unconfirmed,
    /// The pod has no node, so the pod garbage collector ends it.
    Collected,
    /// A finalizer keeps the object.
    Finalizer,
    /// The scheduler finds no node for the pod.
    Unschedulable,
    /// The pod has scheduling gates.
    SchedulingGated,
    /// No scheduler has reported on the pod.
    NoScheduler,
    /// The volume can be used on other nodes only.
    VolumeNodeAffinity,
    /// The volume is attached to another node.
    MultiAttach,
    /// The volume can't be attached.
    AttachFailed,
    /// A claim of the pod does not exist.
    ClaimMissing,
    /// A claim of the pod has no volume.
    ClaimUnbound,
    /// A claim of the pod is being deleted.
    ClaimTerminating,
    /// The volume of the claim does not exist.
    VolumeMissing,
    /// A container waits.
    ContainerWaiting,
    /// A PodDisruptionBudget allows no eviction.
    DisruptionBudget,
    /// Pods use the claim.
    InUse,
    /// The claim gets its volume with its first pod.
    WaitForFirstConsumer,
    /// The storage class does not exist.
    NoStorageClass,
    /// No volume fits the claim, and nothing creates one.
    NoVolume,
    /// Another claim has the volume.
    VolumeTaken,
    /// The volume is being created.
    Provisioning,
    /// The content of the namespace could not be deleted.
    NamespaceDeletionFailure,
    /// The namespace still has content.
    ContentRemaining,
    /// Finalizers keep content of the namespace.
    FinalizersRemaining,
    /// Kubernetes has not reported yet what is left in the namespace.
    Unreported,
    /// Kubernetes has reported that nothing is left in the namespace, and checks again.
    NothingReported,
    /// The set of the pod is being deleted.
    SetTerminating,
    /// The set of the pod has fewer members.
    OutsideSet,
    /// Other members of the set must be ready first.
    OrderedReady,
    /// The controller could not create the pod.
    NotCreated,
    /// The controller has not created the pod yet.
    NotCreatedYet,
    /// An Event about the object.
    Event,
}

impl fmt::Display for StuckCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

impl From<&Reason> for StuckCode {
    fn from(reason: &Reason) -> Self {
        match reason {
            Reason::Grace { .. } => Self::GracePeriod,
            Reason::Node { health, .. } => match health {
                Health::Ready => Self::NodeReady,
                Health::NotReady { .. } => Self::NodeNotReady,
                Health::Unreachable { .. } => Self::NodeUnreachable,
                Health::OutOfService { .. } => Self::NodeOutOfService,
                Health::Restarted { .. } => Self::NodeFenced,
                Health::KubeletAlive { .. } => Self::NodeOutOfServiceKubeletAlive,
                Health::Gone => Self::NodeGone,
            },
            Reason::Evicted { .. } => Self::Evicted,
            Reason::NeverEvicted => Self::NeverEvicted,
            Reason::Unevicted => Self::Unevicted,
            Reason::Containers { .. } => Self::ContainersRunning,
            Reason::Unmount { .. } => Self::Unmount,
            Reason::Stopping { .. } | Reason::Unconfirmed { .. } => Self::Unconfirmed,
            Reason::Collected => Self::Collected,
            Reason::Finalizer(_) => Self::Finalizer,
            Reason::Unschedulable { .. } => Self::Unschedulable,
            Reason::Gated { .. } => Self::SchedulingGated,
            Reason::NoScheduler { .. } => Self::NoScheduler,
            Reason::VolumeAffinity { .. } => Self::VolumeNodeAffinity,
            Reason::MultiAttach { .. } => Self::MultiAttach,
            Reason::AttachFailed { .. } => Self::AttachFailed,
            Reason::ClaimMissing { .. } => Self::ClaimMissing,
            Reason::ClaimUnbound { .. } => Self::ClaimUnbound,
            Reason::ClaimEnding { .. } => Self::ClaimTerminating,
            Reason::VolumeMissing { .. } => Self::VolumeMissing,
            Reason::Container { .. } => Self::ContainerWaiting,
            Reason::Eviction(_) => Self::DisruptionBudget,
            Reason::UsedBy { .. } => Self::InUse,
            Reason::FirstConsumer { .. } => Self::WaitForFirstConsumer,
            Reason::NoClass { .. } => Self::NoStorageClass,
            Reason::NoVolume => Self::NoVolume,
            Reason::VolumeTaken { .. } => Self::VolumeTaken,
            Reason::Provisioning { .. } => Self::Provisioning,
            Reason::Content { .. } => Self::NamespaceDeletionFailure,
            Reason::Left { .. } => Self::ContentRemaining,
            Reason::ContentFinalizer { .. } => Self::FinalizersRemaining,
            Reason::Unreported => Self::Unreported,
            Reason::NothingReported => Self::NothingReported,
            Reason::SetEnding { .. } => Self::SetTerminating,
            Reason::OutsideSet { .. } => Self::OutsideSet,
            Reason::InOrder { .. } => Self::OrderedReady,
            Reason::NotCreated { .. } => Self::NotCreated,
            Reason::NotCreatedYet { .. } => Self::NotCreatedYet,
            Reason::Event { .. } => Self::Event,
        }
    }
}
