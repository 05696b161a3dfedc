//! The owners of removed pods that do not have all their pods ready.

use k8s_openapi::api::core::v1::Pod;
use schemars::JsonSchema;
use serde::Serialize;

use crate::controller::{Kind, controller};
use crate::facts::pod::namespace;

/// A controller that keeps a number of pods ready: a StatefulSet, a ReplicaSet or a ReplicationController.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodOwner {
    pub(crate) namespace: String,
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

impl PodOwner {
    /// The owner of `pod`; `None` if it has none of these kinds.
    #[must_use]
    pub fn of(pod: &Pod) -> Option<Self> {
        let owner = controller(&pod.metadata)?;
        let kind = Kind::of(owner);
        matches!(
            kind,
            Kind::StatefulSet | Kind::ReplicaSet | Kind::ReplicationController
        )
        .then(|| Self {
            namespace: namespace(pod).to_owned(),
            kind,
            name: owner.name.clone(),
        })
    }

    /// The list in which it is: its namespace and kind.
    pub(crate) fn list(&self) -> (&str, Kind) {
        (&self.namespace, self.kind)
    }
}

/// An owner with fewer ready pods than it should have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncompleteOwner {
    /// Its namespace.
    pub namespace: String,
    /// Its kind, such as `StatefulSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The number of its pods that are ready.
    pub ready: i32,
    /// The number of pods that it should have.
    pub replicas: i32,
}
