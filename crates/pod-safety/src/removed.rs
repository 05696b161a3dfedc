//! Pods that were removed, as stored in the record of a fencing.

use maintenance_lease::protocol::Instant;
use serde::{Deserialize, Serialize};

use crate::controller::Kind;
use crate::wire::seconds;

/// A pod that was removed or soon will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Identifies the pods that can replace it; `None` if it has no controller.
    pub same_controller: Option<SameController>,
    /// Whether to wait for a replacement.
    pub is_expected: bool,
}

/// Identifies the pods that can replace a pod: those that the same controller created since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameController {
    /// The controller's uid.
    #[serde(rename = "uid")]
    pub(crate) controller: String,
    pub(crate) kind: Kind,
    /// The controller's name.
    pub(crate) name: String,
    /// The label that selects its pods, and perhaps others.
    pub(crate) label: Option<(String, String)>,
    /// When the pod was deleted, which is when many controllers replace it. Shortly before the read if it was
    /// not deleted.
    #[serde(with = "seconds")]
    pub(crate) since: Instant,
}
