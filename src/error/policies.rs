//! Why the policies were not changed.

use maintenance_lease::ApiError;

/// Why the policies were not changed.
#[derive(Debug)]
pub(crate) enum PolicyRefusal {
    /// They are not installed.
    NotInstalled,
    /// They were not tested on a server of this version.
    OldServer { version: String },
    /// Another tool manages this object.
    OtherManager { object: String, manager: String },
    /// Another tool manages fields of this object.
    Conflict { object: String, error: ApiError },
    /// They are switched off, but the server still refuses writes.
    StillEnforced(ApiError),
}
