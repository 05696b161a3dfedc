//! Why the policies can't be read or changed.

use maintenance_lease::ApiError;

/// Why an object of the policies can't be read or written.
#[derive(Debug)]
pub enum Error {
    /// The request failed.
    Api(ApiError),
    /// They must not be changed in this state of the cluster, or the change had no effect.
    Refused(Refusal),
}

impl Error {
    /// Whether the request was refused because the user lacks a right.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_forbidden())
    }
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Why the policies were not changed.
#[derive(Debug)]
pub enum Refusal {
    /// They are not installed.
    NotInstalled,
    /// The API server has no admission policies, because it is too old or a sandbox.
    NoAdmission,
    /// The namespace is being deleted.
    NamespaceDeleting,
    /// Nobody knows whether the mode of this policy was changed.
    Unknown {
        /// Its name.
        policy: String,
        /// Why there was no answer.
        error: ApiError,
    },
    /// They were not tested on a server of this version.
    OldServer {
        /// As the server names it.
        version: String,
    },
    /// Another tool manages this object.
    OtherManager {
        /// Kind and name.
        object: String,
        /// The field manager, or the tool that a label names.
        manager: String,
    },
    /// Another tool manages fields of this object.
    Conflict {
        /// Kind and name.
        object: String,
        /// The conflict, as the server reports it.
        error: ApiError,
    },
    /// Somebody added a field to this object, and an apply would not remove it.
    Added {
        /// Kind and name.
        object: String,
        /// The field of its spec.
        field: &'static str,
    },
    /// They refuse nothing in their new mode, but the server still refuses writes that break a rule.
    StillEnforced(ApiError),
    /// They are in deny mode, but the server still admits writes that break a rule.
    NotEnforced,
    /// They are in deny mode, as `wanted`, or in a mode that refuses nothing, but nobody knows what the server refuses now.
    Unchecked {
        /// Whether they should refuse writes.
        wanted: bool,
        /// Why the dry run failed.
        error: ApiError,
    },
}
