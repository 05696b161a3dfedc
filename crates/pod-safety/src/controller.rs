//! The controller of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// The kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Runs one pod on each node.
    DaemonSet,
    /// Runs pods that end by themselves.
    Job,
    /// Runs interchangeable pods.
    ReplicaSet,
    /// The predecessor of ReplicaSet.
    ReplicationController,
    /// Runs pods with stable names.
    StatefulSet,
    /// Any other kind. Its guarantees are unknown.
    Other,
}

impl Kind {
    /// The kind of the controller `reference`. A kind with the same name in another API group is a different
    /// kind.
    pub(crate) fn of(reference: &OwnerReference) -> Self {
        match (group(&reference.api_version), &*reference.kind) {
            ("apps", "DaemonSet") => Self::DaemonSet,
            ("batch", "Job") => Self::Job,
            ("apps", "ReplicaSet") => Self::ReplicaSet,
            ("", "ReplicationController") => Self::ReplicationController,
            ("apps", "StatefulSet") => Self::StatefulSet,
            _ => Self::Other,
        }
    }

    /// Whether a pod is replaced only after it is gone, because the replacement has the same name. Other
    /// controllers give each pod a new name.
    pub(crate) fn holds_names(self) -> bool {
        matches!(self, Self::StatefulSet | Self::Other)
    }
}

/// The controller among an object's owners.
pub(crate) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The controller as shown to users, such as `StatefulSet/web`.
pub(crate) fn shown_as(controller: &OwnerReference) -> String {
    format!("{}/{}", controller.kind, controller.name)
}

/// The API group of an `apiVersion`; empty for the core group.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
