//! Why keys of a lock were not written on its Node, or not removed.

use std::sync::Arc;

use maintenance_lease::{ApiError, Error};

/// Why something was not written on a Node, or was not removed there.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// The lock has ended, or is being ended.
    LockEnded {
        /// Whether it was a hold.
        is_hold: bool,
    },
    /// The Node does not exist, or can't be read.
    NodeGone,
    /// A request failed.
    Request(Arc<Error>),
}

impl WriteError {
    /// The user lacks a right.
    #[must_use]
    pub fn is_missing_right(&self) -> bool {
        self.api().is_some_and(ApiError::is_missing_right)
    }

    /// The server stored something other than what was written: an admission webhook may have changed it.
    #[must_use]
    pub fn is_altered(&self) -> bool {
        matches!(self.api(), Some(ApiError::Altered))
    }

    /// An admission policy of ours refused it.
    pub(crate) fn is_by_our_policy(&self) -> bool {
        self.api()
            .is_some_and(|error| error.policy_code().is_some())
    }

    fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Request(error) => match &**error {
                Error::Api(error) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Request(Arc::new(error))
    }
}
