//! What happened to a pod or Node whose deletion was requested.

use crate::constants::JOB_TRACKING;

/// What happened to the pod or Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is gone.
    Deleted,
    /// Somebody else deleted it first.
    WasGone,
    /// It was a dry run.
    WouldBeDeleted,
    /// It was deleted. It could not be read whether it, or the pods of the Node, are gone.
    Unseen {
        /// Why it could not be read.
        error: String,
    },
    /// It was deleted. The wait until it, or the pods of the Node, are gone was interrupted.
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
    /// The Node is gone, and some of its pods still exist.
    PodsLeft {
        /// The pods, as `NAMESPACE/NAME`.
        pods: Vec<String>,
        /// A Node with that name was registered again.
        registered_again: bool,
    },
}

impl Outcome {
    /// Whether only its Job keeps the pod, until it has counted it.
    #[must_use]
    pub fn is_held_by_job(&self) -> bool {
        matches!(self, Self::Held { finalizers } if finalizers.iter().all(|name| name == JOB_TRACKING))
    }

    /// Whether the request deleted it or may have deleted it.
    #[must_use]
    pub fn was_deleted(&self) -> bool {
        !matches!(self, Self::WasGone | Self::WouldBeDeleted)
    }

    /// Whether something is still expected to happen.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        matches!(
            self,
            Self::Held { .. } | Self::PodsLeft { .. } | Self::Unseen { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_removes_the_finalizer_of_a_deleted_pod() {
        let held = |finalizers: &[&str]| {
            let finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
            Outcome::Held { finalizers }.is_held_by_job()
        };
        assert!(held(&[JOB_TRACKING]));
        assert!(!held(&["a/b"]) && !held(&[JOB_TRACKING, "a/b"]));
    }
}
