//! What clients believe, against what they may.

use std::collections::BTreeMap;
use std::time::Duration;

use super::digest::{Belief, Commit, Index};
use super::rule::{CLOCK_BUDGET, Rule, Violation};
use crate::history::{Acquisition, ClientId, Freeze, Record};
use crate::time::Time;

/// A belief rests on a committed write, from before it was sent until its duration later.
pub(super) fn founded(digest: &Index, violations: &mut Vec<Violation>) {
    for (id, belief) in &digest.beliefs {
        let mut grounds: Vec<(Time, Time)> = digest
            .commits
            .iter()
            .filter(|commit| commit.node == belief.node)
            .filter(|commit| commit.acquisition_after().as_ref() == Some(&belief.acquisition))
            .flat_map(|commit| {
                let sent = digest.requests_of(belief.client, commit);
                sent.map(|request| ground(digest, belief.client, request.sent, commit))
            })
            .collect();
        grounds.sort_unstable();
        for &(from, to) in &belief.spans {
            let mut reached = from;
            for &(begins, ends) in &grounds {
                if begins <= reached {
                    reached = reached.max(ends);
                }
            }
            if reached < to {
                violations.push(Violation {
                    at: reached,
                    rule: Rule::Founded,
                    what: format!(
                        "{} believes in {} (b{}) until {to}, with grounds until {reached}",
                        belief.client, belief.acquisition, id.0
                    ),
                });
            }
        }
    }
}

/// What a write gives its sender ground to believe.
fn ground(digest: &Index, client: ClientId, sent: Time, commit: &Commit) -> (Time, Time) {
    let seconds = commit.after.as_ref().map_or(0, |after| after.duration);
    let length = Duration::from_secs(seconds.into());
    // Clocks drift, and count in whole microseconds.
    let end = sent + length + length / 1_000 + Duration::from_millis(2);
    let mut stood_still = digest.stood_still(client, sent, end);
    if stood_still.any(|still| matches!(still.how, Freeze::Paused | Freeze::Halted)) {
        // Its boot clock says nothing any more; it goes by the server's time, as far as that is known.
        (sent, end + CLOCK_BUDGET + digest.stepped_back_since(sent))
    } else {
        (sent, end)
    }
}

/// No two believe in the same node at once, but where the first one's lock was broken before.
pub(super) fn one_believer(digest: &Index, violations: &mut Vec<Violation>) {
    let broken = broken(digest);
    let begun = begun(digest);
    let beliefs: Vec<&Belief> = digest.beliefs.values().collect();
    for (place, one) in beliefs.iter().enumerate() {
        for other in &beliefs[place + 1..] {
            if one.client == other.client || one.node != other.node {
                continue;
            }
            let earlier = match (begun.get(&one.acquisition), begun.get(&other.acquisition)) {
                (Some(a), Some(b)) if a <= b => one,
                (Some(_), Some(_)) => other,
                // Without any ground: another rule's business.
                _ => continue,
            };
            let allowed_from = (one.acquisition != other.acquisition)
                .then(|| broken.get(&earlier.acquisition))
                .flatten();
            if let Some(at) = overlap(one, other)
                && allowed_from.is_none_or(|&from| at < from)
            {
                violations.push(Violation {
                    at,
                    rule: Rule::OneBeliever,
                    what: format!(
                        "{} by {} and {} by {} both believe in {}",
                        one.client, one.acquisition, other.client, other.acquisition, one.node
                    ),
                });
            }
        }
    }
}

/// When both are believed first.
fn overlap(one: &Belief, other: &Belief) -> Option<Time> {
    let mut first = None;
    for &(from, to) in &one.spans {
        for &(begins, ends) in &other.spans {
            let (later, sooner) = (from.max(begins), to.min(ends));
            if later < sooner && first.is_none_or(|first| later < first) {
                first = Some(later);
            }
        }
    }
    first
}

/// When each acquisition was broken: on purpose, or from outside.
pub(super) fn broken(digest: &Index) -> BTreeMap<Acquisition, Time> {
    let mut broken = BTreeMap::new();
    for commit in &digest.commits {
        let Some(held_state) = commit.acquisition_before() else {
            continue;
        };
        let breaks = match (commit.by, digest.op_of(commit)) {
            (None, _) => {
                let times = |record: &Record| (record.acquired, record.renewed, record.duration);
                commit.acquisition_after().as_ref() != Some(&held_state)
                    || commit.before.as_ref().map(times) != commit.after.as_ref().map(times)
            }
            (Some(_), Some((_, op))) => op.call.breaks(&held_state),
            (Some(_), None) => false,
        };
        if breaks {
            broken.entry(held_state).or_insert(commit.at);
        }
    }
    broken
}

/// The resource version at which each acquisition began.
fn begun(digest: &Index) -> BTreeMap<Acquisition, u64> {
    let mut begun = BTreeMap::new();
    for commit in &digest.commits {
        if let Some(acquisition) = commit.begins() {
            begun.entry(acquisition).or_insert(commit.version);
        }
    }
    begun
}
