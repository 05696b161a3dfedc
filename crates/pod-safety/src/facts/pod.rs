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
    /// Its node; empty if it is not scheduled yet.
    pub node: String,
    /// It comes from a file of the kubelet (a static pod).
    pub mirror: bool,
    /// When its grace period ends; `None` if it was not deleted.
    pub ends: Option<Instant>,
    /// Its grace period in seconds, if it is being deleted.
    pub grace: i64,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Its Job keeps it until its phase is Failed or Succeeded, and the kubelet has not reported such a
    /// phase.
    pub job_waits: bool,
    /// The names of its resource claims, for devices that Kubernetes allocates.
    pub resource_claims: Vec<String>,
    /// It has the condition `DisruptionTarget`, which says that a disruption from outside ends it.
    pub disrupted: bool,
    /// What it shows about its node.
    pub conditions: PodConditions,
}

/// What the control plane wrote on a pod about its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodConditions {
    /// It is ready. It is not if the control plane marked its node as unreachable.
    pub ready: bool,
    /// Since when it is not ready.
    pub unready_since: Option<Instant>,
}

impl PodSnapshot {
    /// The snapshot of `pod`.
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
            resource_claims: resource_claims(pod),
            disrupted: condition(pod, "DisruptionTarget").is_some_and(is_true),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            conditions: conditions(pod),
        }
    }

    /// Whether it was never scheduled to a node, so that it never ran.
    #[must_use]
    pub fn never_ran(&self) -> bool {
        self.node.is_empty()
    }

    /// Whether only its finalizers keep its object, because it was force-deleted before or its kubelet has ended
    /// it. If it was force-deleted, it may still run. This excludes a pod whose Job waits for its phase: that Job never removes its finalizer by itself.
    #[must_use]
    pub fn was_forced(&self) -> bool {
        self.ends.is_some() && self.grace == 0 && !self.finalizers.is_empty() && !self.job_waits
    }
}

/// The names of the pod's resource claims in its spec, and that of the claim for its extended resources.
fn resource_claims(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.iter();
    let claims = spec.flat_map(|spec| spec.resource_claims.iter().flatten());
    let extended = { pod.status.iter() }
        .filter_map(|status| status.extended_resource_claim_status.as_ref())
        .map(|status| status.resource_claim_name.clone());
    claims
        .map(|claim| claim.name.clone())
        .chain(extended)
        .collect()
}

/// Whether a pod comes from a file of its kubelet. Its object is only a mirror, and deleting the object does
/// not stop the pod.
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
#[must_use]
pub fn full_name(pod: &Pod) -> String {
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

/// Whether its phase is final.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Failed" | "Succeeded")
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    conditions.iter().find(|one| one.type_ == kind)
}

pub(crate) fn is_true(condition: &PodCondition) -> bool {
    condition.status == "True"
}

fn conditions(pod: &Pod) -> PodConditions {
    let ready = condition(pod, "Ready");
    PodConditions {
        ready: ready.is_some_and(is_true),
        unready_since: ready
            .filter(|condition| !is_true(condition))
            .and_then(|condition| condition.last_transition_time.as_ref().map(instant)),
    }
}
