//! A broken promise as people read it: what happened before it, and how to see more.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::checker::{Rule, Violation, check};
use crate::fault_counts::FaultCounts;
use crate::history::{Entry, Event};
use crate::plan::Plan;
use crate::world::live;

/// So much of what happened before is shown.
const LINES: usize = 60;

/// What came of a world.
pub struct Verdict {
    /// How a promise was broken, if one was.
    pub broken: Option<String>,
    /// Which promises were broken.
    pub rules: BTreeSet<Rule>,
    /// The faults that it met.
    pub faults: FaultCounts,
}

/// Lives through the world of `seed`, and judges it.
#[must_use]
pub fn verdict(seed: u64) -> Verdict {
    judge(seed, &live(&Plan::of(seed)))
}

/// Judges what happened in the world of `seed`.
#[must_use]
pub fn judge(seed: u64, history: &[Entry]) -> Verdict {
    let violations = check(history);
    let first = violations.first();
    Verdict {
        rules: violations.iter().map(|violation| violation.rule).collect(),
        broken: first.map(|first| story(seed, history, first, violations.len())),
        faults: FaultCounts::of(history),
    }
}

/// All that happened in the world of `seed`.
#[must_use]
pub fn everything(seed: u64) -> String {
    let plan = Plan::of(seed);
    let history = live(&plan);
    let mut text = format!("{plan:#?}\n");
    for entry in &history {
        let _ = writeln!(text, "{entry}");
    }
    for violation in check(&history) {
        let _ = writeln!(text, "{violation}");
    }
    text
}

/// Events that are too frequent to be read are left out.
fn is_told(event: &Event) -> bool {
    !matches!(
        event,
        Event::Acts { .. } | Event::Answered { .. } | Event::Knows { .. }
    )
}

fn story(seed: u64, history: &[Entry], first: &Violation, violations: usize) -> String {
    let before: Vec<&Entry> = history
        .iter()
        .filter(|entry| entry.at <= first.at && is_told(&entry.event))
        .collect();
    let mut text =
        format!("seed {seed} breaks a promise ({violations} times). What happened before:\n");
    for entry in &before[before.len().saturating_sub(LINES)..] {
        let _ = writeln!(text, "{entry}");
    }
    let _ = writeln!(text, "{first}");
    let _ = write!(text, "All of it: cargo xtask sim --seed {seed} --trace");
    text
}
