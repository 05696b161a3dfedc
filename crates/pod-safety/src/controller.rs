//! The controller of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};

/// A kind of controller, as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Of one pod a node.
    DaemonSet,
    /// Of pods that end by themselves.
    Job,
    /// Of pods that are all alike.
    ReplicaSet,
    /// The same, of old.
    ReplicationController,
    /// Of pods that have a name each.
    StatefulSet,
    /// Any other, which may promise anything.
    Other,
}

impl Kind {
    /// That of the controller `reference`. One of the same name in another API group is another.
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

    /// Whether a pod is replaced only after it is gone, because the replacement gets the same name. Other
    /// owners give each pod a new name.
    pub(crate) fn holds_names(self) -> bool {
        matches!(self, Self::StatefulSet | Self::Other)
    }
}

/// The controller among an object's owners.
pub(crate) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The controller as people know it, such as `StatefulSet/web`.
pub(crate) fn shown_as(controller: &OwnerReference) -> String {
    format!("{}/{}", controller.kind, controller.name)
}

/// The API group of an `apiVersion`; empty for the core group.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
