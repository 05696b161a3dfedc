//! What can go wrong when a lock protects its node, or ends that protection.

use std::time::Duration;

use maintenance_lease::Error;
use other_tools::WriteError;

/// Why something was not written on a Node, or was not removed there.
#[derive(Clone, Debug)]
pub(crate) enum ProtectionError {
    /// It failed, or was not tried.
    Write(WriteError),
    /// It took longer than this.
    TooSlow(Duration),
    /// Ctrl-C.
    Interrupted,
}

impl ProtectionError {
    /// The user lacks a right.
    pub(crate) fn is_missing_right(&self) -> bool {
        match self {
            Self::Write(error) => error.is_missing_right(),
            Self::TooSlow(_) | Self::Interrupted => false,
        }
    }

    /// The server stored something other than what was written.
    pub(crate) fn is_altered(&self) -> bool {
        matches!(self, Self::Write(error) if error.is_altered())
    }
}

impl From<WriteError> for ProtectionError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Error> for ProtectionError {
    fn from(error: Error) -> Self {
        Self::Write(error.into())
    }
}
