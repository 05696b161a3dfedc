//! Doubt: a machine was paused, which its wall clock shows, and nobody knows what happened meanwhile.

use std::time::Duration;

use super::digest::{Belief, Index, MachinePause};
use super::rule::{Rule, Violation};
use super::time::is_kept;
use crate::history::{BeliefEnd, Freeze};
use crate::time::Time;

/// A check is under way this long after a pause at the latest: keepers look at the clocks once a
/// second.
const CHECKED: Duration = Duration::from_secs(2);

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    let beliefs = digest.beliefs.values().filter(|belief| is_kept(belief));
    for belief in beliefs {
        for still in digest.standstills.iter().filter(|still| {
            still.client == belief.client && still.how == Freeze::Paused && still.to < digest.end
        }) {
            if belief.over_at.is_some_and(|over| over <= still.from) {
                continue;
            }
            if let Some(at) = worked(digest, belief, still) {
                violations.push(Violation {
                    at,
                    rule: Rule::NoWorkInDoubt,
                    what: format!(
                        "{} works under {}, after a pause that ended at {} and before a check",
                        belief.client, belief.acquisition, still.to
                    ),
                });
            }
            if let Some(at) = unchecked(digest, belief, still) {
                violations.push(Violation {
                    at,
                    rule: Rule::Checked,
                    what: format!(
                        "{} does not check {} after a pause that ended at {}",
                        belief.client, belief.acquisition, still.to
                    ),
                });
            }
        }
    }
}

/// When work went on after the pause though no request from after it was answered.
fn worked(digest: &Index, belief: &Belief, still: &MachinePause) -> Option<Time> {
    let requests = digest.requests.values().filter(|request| {
        request.client == belief.client
            && request.node.as_ref() == Some(&belief.node)
            && request.sent >= still.to
    });
    let checked = requests.filter_map(|request| request.answered).min();
    // What runs beside the keeper goes on until that looks at the clocks; nothing begins so.
    let goes_on = |at: Time| {
        belief.ends == BeliefEnd::Notification
            && belief.begun < still.from
            && digest.has_just_gone_on(belief.client, at)
    };
    let mut acts = belief.acts.iter().copied();
    let first = acts.find(|&at| at >= still.to && !goes_on(at))?;
    checked
        .is_none_or(|checked| first < checked)
        .then_some(first)
}

/// When a check should have been under way.
fn unchecked(digest: &Index, belief: &Belief, still: &MachinePause) -> Option<Time> {
    let due = still.to + CHECKED;
    let is_over = belief.over_at.is_some_and(|over| over <= due);
    let healed = digest.healed.is_some_and(|healed| healed <= due);
    let mut again = digest.stood_still(belief.client, still.to, due);
    let stops_again = again.any(|other| other.from >= still.to);
    if belief.begun >= still.from || is_over || healed || stops_again {
        return None;
    }
    let mut requests = digest.requests.values();
    let is_sent = requests.any(|request| {
        request.client == belief.client
            && request.node.as_ref() == Some(&belief.node)
            && (still.to..=due).contains(&request.sent)
    });
    (!is_sent).then_some(due)
}
