//! The pod itself, and what it shows about its node.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use maintenance_lease::protocol::Instant;

use crate::constants::{JOB_TRACKING, MIRROR};
use crate::wire::instant;

/// A pod, as read at one resource version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSnapshot {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub version: String,
    /// Its node; empty if it has none yet.
    pub node: String,
    /// It comes from a file of the kubelet.
    pub mirror: bool,
    /// When its grace is over; `None`: it was not asked to end.
    pub ends: Option<Instant>,
    /// Its grace period in seconds, if it is being deleted.
    pub grace: i64,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Its Job keeps it until its phase is Failed or Succeeded, which its kubelet has not reported.
    pub job_waits: bool,
    /// The condition `DisruptionTarget` says that something outside the pod ends it.
    pub disrupted: bool,
    /// What it shows about its node.
    pub conditions: PodConditions,
}

/// What the control plane wrote on a pod about its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodConditions {
    /// It counts as ready: its node was not marked unreachable.
    pub ready: bool,
    /// Since when it does not.
    pub unready_since: Option<Instant>,
    /// `status.reason` is `NodeLost`.
    pub node_lost: bool,
    /// It was evicted because of a taint of its node, such as the one of an unreachable node.
    pub evicted_by_taint: bool,
}

impl PodSnapshot {
    /// What `pod` says.
    #[must_use]
    pub fn of(pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            version: text(&metadata.resource_version),
            node: node_name(pod).to_owned(),
            mirror: is_static(metadata),
            ends: metadata.deletion_timestamp.as_ref().map(instant),
            grace: metadata.deletion_grace_period_seconds.unwrap_or(0),
            job_waits: is_tracked(metadata) && !has_ended(pod),
            disrupted: condition(pod, "DisruptionTarget").is_some_and(is_true),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            conditions: conditions(pod),
        }
    }

    /// It was never placed on a node, so that nothing of it ever ran.
    #[must_use]
    pub fn never_ran(&self) -> bool {
        self.node.is_empty()
    }

    /// Its deletion was forced before, or its kubelet has ended it: only its finalizers hold it. A pod
    /// whose Job waits for its phase is not meant: that Job never removes its finalizer by itself.
    #[must_use]
    pub fn was_forced(&self) -> bool {
        self.ends.is_some() && self.grace == 0 && !self.finalizers.is_empty() && !self.job_waits
    }
}

/// Whether a pod comes from a file of its kubelet: its object is a picture, and deleting that ends nothing.
pub(crate) fn is_static(pod: &ObjectMeta) -> bool {
    let annotations = pod.annotations.as_ref();
    let owners = pod.owner_references.as_deref().unwrap_or_default();
    annotations.is_some_and(|all| all.contains_key(MIRROR))
        || owners.iter().any(|owner| owner.kind == "Node")
}

fn is_tracked(pod: &ObjectMeta) -> bool {
    let finalizers = pod.finalizers.iter().flatten();
    finalizers.into_iter().any(|name| name == JOB_TRACKING)
}

/// The namespace of a pod.
pub(crate) fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or_default()
}

/// The pod as `NAMESPACE/NAME`.
pub(crate) fn full_name(pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    format!("{}/{name}", namespace(pod))
}

/// The node of a pod; empty if it has none.
pub(crate) fn node_name(pod: &Pod) -> &str {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.unwrap_or_default()
}

/// The phase of a pod; empty if it has none.
pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// Whether its phase is one that it never leaves.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Failed" | "Succeeded")
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    conditions.iter().find(|one| one.type_ == kind)
}

fn is_true(condition: &PodCondition) -> bool {
    condition.status == "True"
}

/// Whether the control plane has marked the pod as not ready because its node does not report any more. It changes
/// `Ready` alone. A kubelet changes `ContainersReady` too, except for readiness gates.
pub(crate) fn is_of_lost_node(pod: &Pod) -> bool {
    let ready = condition(pod, "Ready").filter(|one| one.status == "False");
    ready.is_some_and(|ready| ready.reason.as_deref() != Some("ReadinessGatesNotReady"))
        && condition(pod, "ContainersReady").is_some_and(is_true)
}

pub(crate) fn conditions(pod: &Pod) -> PodConditions {
    let status = pod.status.as_ref();
    let ready = condition(pod, "Ready");
    let disrupted = condition(pod, "DisruptionTarget").filter(|one| is_true(one));
    PodConditions {
        ready: ready.is_some_and(is_true),
        unready_since: ready
            .filter(|condition| !is_true(condition))
            .and_then(|condition| condition.last_transition_time.as_ref().map(instant)),
        node_lost: status.is_some_and(|status| status.reason.as_deref() == Some("NodeLost")),
        evicted_by_taint: disrupted
            .is_some_and(|condition| condition.reason.as_deref() == Some("DeletionByTaintManager")),
    }
}
