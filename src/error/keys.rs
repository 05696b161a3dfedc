//! Why the keys of a lock were not set on its Node, or not removed.

use std::time::Duration;

use maintenance_lease::{ApiError, Error};
use node_keys::NotSet;

/// Why the keys of a lock were not set on its Node, or not removed.
#[derive(Debug)]
pub(crate) enum KeysError {
    /// It failed, or was not tried.
    NotSet(NotSet),
    /// It took longer than this.
    TooSlow(Duration),
}

impl KeysError {
    /// The user lacks a right.
    pub(crate) fn is_missing_right(&self) -> bool {
        self.api().is_some_and(ApiError::is_missing_right)
    }

    /// The server stored something other than what was written.
    pub(crate) fn is_altered(&self) -> bool {
        matches!(self.api(), Some(ApiError::Altered))
    }

    fn api(&self) -> Option<&ApiError> {
        match self {
            Self::NotSet(NotSet::Failed(Error::Api(error))) => Some(error),
            _ => None,
        }
    }
}

impl From<NotSet> for KeysError {
    fn from(error: NotSet) -> Self {
        Self::NotSet(error)
    }
}

impl From<Error> for KeysError {
    fn from(error: Error) -> Self {
        Self::NotSet(error.into())
    }
}
