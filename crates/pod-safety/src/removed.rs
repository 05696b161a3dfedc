//! Pods that were removed, as a record of a fencing keeps them.

use maintenance_lease::protocol::Instant;
use serde::{Deserialize, Serialize};

use crate::controller::Kind;
use crate::wire::seconds;

/// A pod that was removed, or soon will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The pods among which its replacement is; `None`: it has no controller.
    pub same_controller: Option<SameController>,
    /// A replacement is worth waiting for.
    pub is_expected: bool,
}

/// The pods among which a replacement is: those that the same controller made since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameController {
    /// The controller's uid.
    #[serde(rename = "uid")]
    pub(crate) controller: String,
    pub(crate) kind: Kind,
    /// The controller's name.
    pub(crate) name: String,
    /// The label by which its pods, and perhaps others, are read.
    pub(crate) label: Option<(String, String)>,
    /// When the pod was asked to end, which is when many controllers replace it.
    #[serde(with = "seconds")]
    pub(crate) since: Instant,
}
