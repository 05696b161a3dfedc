//! A target that was deleted, and what was known about it before.

use pod_safety::SameController;
use pod_safety::facts::Facts;
use pod_safety::outcome::Outcome;
use pod_safety::report::Report;

/// What was deleted, with what was known about it before.
#[derive(Clone)]
pub(super) struct Deleted {
    pub(super) report: Report,
    /// If it is a Node: the reports on the pods that are deleted with it.
    pub(super) along: Vec<Report>,
    /// The pod; `None` if this is a Node, or was already deleted.
    pub(super) seen: Option<ReadPod>,
    pub(super) outcome: Outcome,
}

impl Deleted {
    /// An object that was already deleted, and that `finalizers` keep.
    pub(super) fn before(report: Report, finalizers: Vec<String>) -> Self {
        Self {
            report,
            along: Vec::new(),
            seen: None,
            outcome: Outcome::StillHeld { finalizers },
        }
    }

    /// An object that disappeared before it was deleted.
    pub(super) fn gone(report: Report) -> Self {
        Self {
            report,
            along: Vec::new(),
            seen: None,
            outcome: Outcome::WasGone,
        }
    }

    /// Whether it was already deleted before.
    pub(super) fn was_held(&self) -> bool {
        matches!(self.outcome, Outcome::StillHeld { .. })
    }
}

/// A pod that was seen.
#[derive(Clone)]
pub(super) struct ReadPod {
    pub(super) facts: Facts,
    /// The pods that may include its replacement.
    pub(super) same_controller: Option<SameController>,
}
