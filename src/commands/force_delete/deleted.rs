//! A target that was deleted, and what was known about it before.

use std::collections::BTreeSet;

use pod_safety::facts::Facts;
use pod_safety::outcome::Outcome;
use pod_safety::owners::PodOwner;
use pod_safety::report::Report;

/// What was deleted, with what was known about it before.
pub(super) struct Deleted {
    pub(super) report: Report,
    /// If it is a Node: the reports on the pods that are deleted with it.
    pub(super) along: Vec<Report>,
    /// The facts about the pod; `None` if this is a Node, or was already gone.
    pub(super) facts: Option<Facts>,
    /// The owners of the pods.
    pub(super) owners: BTreeSet<PodOwner>,
    pub(super) outcome: Outcome,
}

impl Deleted {
    /// An object that disappeared before it was deleted.
    pub(super) fn gone(report: Report) -> Self {
        Self {
            report,
            along: Vec::new(),
            facts: None,
            owners: BTreeSet::new(),
            outcome: Outcome::WasGone,
        }
    }

    /// Whether what was deleted may be gone soon: the pods of a Node, or a pod that its Job still counts.
    pub(super) fn is_open(&self) -> bool {
        match self.report.target.kind {
            "node" => self.outcome == Outcome::Deleted,
            _ => self.outcome.is_held_by_job(),
        }
    }
}
