//! What became of a pod or Node whose deletion was requested.

use crate::why::Reason;

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is gone.
    Deleted,
    /// Somebody else deleted it first.
    WasGone,
    /// It was a dry run.
    WouldBeDeleted,
    /// It is gone, and the expected replacement did not appear in time.
    Unreplaced {
        /// Why not.
        reasons: Vec<Reason>,
    },
    /// It was deleted; whether its replacement runs, or the pods of a Node are gone, could not be read.
    Unseen {
        /// Why not.
        error: String,
    },
    /// It was deleted; the wait for its replacement, or for the end of a Node's pods, was interrupted.
    Unwatched,
    /// The request got no answer: it may have taken effect, or still may.
    Unknown {
        /// Why; `None`: the answer was not awaited.
        error: Option<String>,
    },
    /// The pod was marked `Failed` for its Job, and the server refused to delete it.
    Marked {
        /// Why.
        error: String,
    },
    /// The object is kept by its finalizers.
    Held {
        /// Which.
        finalizers: Vec<String>,
    },
    /// It was already deleted and is kept by its finalizers; nothing was done.
    StillHeld {
        /// Which.
        finalizers: Vec<String>,
    },
    /// The Node is gone, and pods of it are still there.
    PodsLeft {
        /// Which, as `NAMESPACE/NAME`.
        pods: Vec<String>,
        /// There is a Node of that name again.
        registered_again: bool,
    },
    /// A replacement exists.
    Replaced {
        /// Which.
        replacement: Replacement,
        /// Why it does not run yet.
        reasons: Vec<Reason>,
    },
}

/// A pod in place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its node; `None`: it has none yet.
    pub node: Option<String>,
    /// It runs on a node that reports, and is not being deleted; or it has finished.
    pub is_back: bool,
}

impl Outcome {
    /// Whether something is still expected to happen.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        match self {
            Self::Unreplaced { .. }
            | Self::Held { .. }
            | Self::StillHeld { .. }
            | Self::PodsLeft { .. }
            | Self::Unseen { .. } => true,
            Self::Replaced { replacement, .. } => !replacement.is_back,
            Self::Deleted
            | Self::WasGone
            | Self::WouldBeDeleted
            | Self::Unwatched
            | Self::Unknown { .. }
            | Self::Marked { .. } => false,
        }
    }
}
