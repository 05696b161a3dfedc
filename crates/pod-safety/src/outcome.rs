//! What happened to a pod or Node whose deletion was requested.

use crate::constants::JOB_TRACKING;
use crate::why::Reason;

/// What happened to the pod or Node.
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
        /// Why there is no replacement.
        reasons: Vec<Reason>,
    },
    /// It was deleted. It could not be read whether its replacement runs, or whether the pods of the Node are
    /// gone.
    Unseen {
        /// Why it could not be read.
        error: String,
    },
    /// It was deleted. The wait for its replacement, or for the removal of a Node's pods, was interrupted.
    Unwatched,
    /// The request got no response. It may have taken effect, or may still take effect.
    Unknown {
        /// The error; `None` if the response was not awaited.
        error: Option<String>,
    },
    /// The pod was marked `Failed` for its Job, and the server refused to delete it.
    Marked {
        /// Why the server refused.
        error: String,
    },
    /// The object still exists. If it has finalizers, they keep it.
    Held {
        /// Its finalizers.
        finalizers: Vec<String>,
    },
    /// It was already deleted and is kept by its finalizers, so nothing was done.
    StillHeld {
        /// Its finalizers.
        finalizers: Vec<String>,
    },
    /// The Node is gone, and some of its pods still exist.
    PodsLeft {
        /// The pods, as `NAMESPACE/NAME`.
        pods: Vec<String>,
        /// A Node with that name was registered again.
        registered_again: bool,
    },
    /// A replacement exists.
    Replaced {
        /// The replacement.
        replacement: Replacement,
        /// Why it does not run yet.
        reasons: Vec<Reason>,
    },
}

/// A pod that replaces another pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its node; `None` if it is not scheduled yet.
    pub node: Option<String>,
    /// It runs on a node that reports and is not being deleted, or it has succeeded.
    pub is_back: bool,
}

impl Outcome {
    /// Whether the pod or Node was deleted, and the final outcome is not known yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Self::Deleted => true,
            // Its Job removes the finalizer.
            Self::Held { finalizers } => finalizers.iter().all(|name| name == JOB_TRACKING),
            _ => false,
        }
    }

    /// Whether the request deleted it or may have deleted it.
    #[must_use]
    pub fn was_deleted(&self) -> bool {
        !matches!(
            self,
            Self::WasGone | Self::WouldBeDeleted | Self::StillHeld { .. }
        )
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_removes_the_finalizer_of_a_deleted_pod() {
        let held = |finalizers: &[&str]| {
            let finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
            Outcome::Held { finalizers }.is_open()
        };
        assert!(Outcome::Deleted.is_open());
        assert!(held(&[JOB_TRACKING]));
        assert!(!held(&["a/b"]) && !held(&[JOB_TRACKING, "a/b"]));
        assert!(!Outcome::WasGone.is_open() && !Outcome::Unwatched.is_open());
    }
}
