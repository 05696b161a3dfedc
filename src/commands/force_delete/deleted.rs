//! A target that was deleted, and what was known about it before.

use std::collections::BTreeSet;

use pod_safety::facts::Facts;
use pod_safety::outcome::Outcome;
use pod_safety::owners::PodOwner;
use pod_safety::report::Report;

/// What was deleted, with what was known about it before.
#[derive(Clone)]
pub(super) struct Deleted {
    pub(super) report: Report,
    /// If it is a Node: the reports on the pods that are deleted with it.
    pub(super) along: Vec<Report>,
    /// The facts about the pod; `None` if this is a Node, or was already deleted.
    pub(super) facts: Option<Facts>,
    /// The owners of the pods.
    pub(super) owners: BTreeSet<PodOwner>,
    pub(super) outcome: Outcome,
}

impl Deleted {
    /// An object that was already deleted, and that `finalizers` keep.
    pub(super) fn before(report: Report, finalizers: Vec<String>) -> Self {
        Self::without_request(report, Outcome::StillHeld { finalizers })
    }

    /// An object that disappeared before it was deleted.
    pub(super) fn gone(report: Report) -> Self {
        Self::without_request(report, Outcome::WasGone)
    }

    fn without_request(report: Report, outcome: Outcome) -> Self {
        Self {
            report,
            along: Vec::new(),
            facts: None,
            owners: BTreeSet::new(),
            outcome,
        }
    }

    /// Whether what was deleted may be gone soon: the pods of a Node, or a pod that its Job still counts.
    pub(super) fn is_open(&self) -> bool {
        match self.report.target.kind {
            "node" => self.outcome == Outcome::Deleted,
            _ => self.outcome.is_held_by_job(),
        }
    }

    /// Whether it was already deleted before.
    pub(super) fn was_held(&self) -> bool {
        matches!(self.outcome, Outcome::StillHeld { .. })
    }
}
