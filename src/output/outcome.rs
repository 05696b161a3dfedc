//! What became of a pod or Node that was removed, as data.

use pod_safety::outcome;
use schemars::JsonSchema;
use serde::Serialize;

/// What became of it.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Outcome")]
pub(super) enum DeletionOutcome {
    /// It was deleted.
    Deleted,
    /// It was gone before the request came.
    WasGone,
    /// A dry run.
    WouldBeDeleted,
    /// It was deleted; whether it, or a Node's pods, are gone could not be checked, because of `error`.
    Unseen,
    /// It was deleted, and the wait for what follows was interrupted.
    Unwatched,
    /// There was no answer, because of `error`. The request may still take effect.
    Unknown,
    /// The pod of a Job was marked `Failed`, but not deleted, because of `error`.
    MarkedFailed,
    /// It stays, for `finalizers`.
    HeldByFinalizer,
    /// The Node is gone, and `pods` are left.
    PodsLeft,
}

impl DeletionOutcome {
    pub(super) fn of(outcome: &outcome::Outcome) -> Self {
        match outcome {
            outcome::Outcome::Deleted => Self::Deleted,
            outcome::Outcome::WasGone => Self::WasGone,
            outcome::Outcome::WouldBeDeleted => Self::WouldBeDeleted,
            outcome::Outcome::Unseen { .. } => Self::Unseen,
            outcome::Outcome::Unwatched => Self::Unwatched,
            outcome::Outcome::Unknown { .. } => Self::Unknown,
            outcome::Outcome::Marked { .. } => Self::MarkedFailed,
            outcome::Outcome::Held { .. } => Self::HeldByFinalizer,
            outcome::Outcome::PodsLeft { .. } => Self::PodsLeft,
        }
    }
}
