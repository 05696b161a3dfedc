//! Why the policies were not changed.

use maintenance_lease::ApiError;

/// Why the policies were not changed.
#[derive(Debug)]
pub(crate) enum PolicyRefusal {
    /// They are not installed.
    NotInstalled,
    /// The API server has no admission policies, because it is too old or a sandbox.
    NoAdmission,
    /// The namespace is being deleted.
    NamespaceDeleting,
    /// Nobody knows whether the mode of this policy was changed.
    Unknown { policy: String, error: ApiError },
    /// They were not tested on a server of this version.
    OldServer { version: String },
    /// Another tool manages this object.
    OtherManager { object: String, manager: String },
    /// Another tool manages fields of this object.
    Conflict { object: String, error: ApiError },
    /// They refuse nothing in their new mode, but the server still refuses writes that break a rule.
    StillEnforced(ApiError),
    /// They are in deny mode, but the server still admits writes that break a rule.
    NotEnforced,
    /// They are in deny mode, as `wanted`, or in a mode that refuses nothing, but nobody knows what the server refuses now.
    Unchecked { wanted: bool, error: ApiError },
}
