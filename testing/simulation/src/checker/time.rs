//! What clients know of the server's time, and whether what they believe and say fits it.

use std::time::Duration;

use super::belief::broken;
use super::digest::{Belief, Commit, Index, MachinePause, TimeEstimate};
use super::rule::{CLOCK_BUDGET, Rule, Violation};
use crate::history::{Acquisition, BeliefEnd, Call, ClientId, Freeze, OpId};
use crate::time::{EPOCH, Time};

/// How far a single point may be off that was picked where the interval was narrow.
const PICKED: i64 = 1_400_000;

/// What clocks that drift, and readings at different moments, make of an interval.
const DRIFT: i64 = 50_000;

/// The interval of what a client knows has its ends in order and contains some server's time.
pub(super) fn interval(digest: &Index, violations: &mut Vec<Violation>) {
    for known in &digest.known {
        // Before the first answer nothing is known.
        let Some(life) = life(digest, known.client, known.at) else {
            continue;
        };
        if !has_heard(digest, known, life) {
            continue;
        }
        if let Some(what) = wrong(digest, known, life) {
            violations.push(Violation {
                at: known.at,
                rule: Rule::Interval,
                what: format!("{} knows {what}", known.client),
            });
        }
    }
}

fn wrong(digest: &Index, known: &TimeEstimate, life: Time) -> Option<String> {
    let now = EPOCH + known.at.as_micros();
    let (earliest, latest) = (known.earliest, known.latest.unwrap_or(i64::MAX));
    if earliest > latest {
        let by = earliest - latest;
        return Some(format!("an interval whose start is {by} us after its end"));
    }
    let tolerance = DRIFT + if earliest == latest { PICKED } else { 0 };
    // What was heard of clocks that were stepped since counts for a while.
    let clocks = digest.server_clocks.iter();
    let heard = clocks.take_while(|(since, _)| *since <= known.at);
    let ahead: Vec<i64> = heard.flat_map(|(_, ahead)| ahead).copied().collect();
    let most = ahead.iter().max().copied().unwrap_or(0);
    if earliest - tolerance > now + most {
        let by = earliest - now - most;
        return Some(format!("a time that is {by} us ahead of every server"));
    }
    let least = ahead.iter().min().copied().unwrap_or(0);
    if latest < now + least - tolerance && is_up_to_date(digest, known, life) {
        let by = now + least - latest;
        return Some(format!("a time that is {by} us behind every server"));
    }
    None
}

/// When the process began that lived at `at`.
fn life(digest: &Index, client: ClientId, at: Time) -> Option<Time> {
    let mut lives = digest.lives.iter().rev();
    let life = lives.find(|&&(whose, since)| whose == client && since <= at);
    life.map(|&(_, since)| since)
}

fn has_heard(digest: &Index, known: &TimeEstimate, life: Time) -> bool {
    digest.requests.values().any(|request| {
        request.client == known.client
            && request.sent >= life
            && request
                .answered
                .is_some_and(|answered| answered <= known.at)
    })
}

/// No time passed that its clocks did not count, or it has heard of the server since.
fn is_up_to_date(digest: &Index, known: &TimeEstimate, life: Time) -> bool {
    let mut stood_still = digest.stood_still(known.client, life, known.at);
    stood_still.all(|still| match still.how {
        Freeze::Stopped | Freeze::Suspended => true,
        Freeze::Paused => has_heard_since(digest, known, still),
        // It may have been too short to distinguish it from a slow answer.
        Freeze::Halted => false,
    })
}

/// An answer came since the pause began: one that came while the machine stood still is read when it
/// goes on.
fn has_heard_since(digest: &Index, known: &TimeEstimate, still: &MachinePause) -> bool {
    digest.requests.values().any(|request| {
        let within = still.from..=known.at;
        let answered = request.answered;
        request.client == known.client && answered.is_some_and(|at| within.contains(&at))
    })
}

/// A believer's Lease stands for as long as it believes, by every server's clock: nobody has to come
/// and take it for that to be seen.
pub(super) fn covered(digest: &Index, violations: &mut Vec<Violation>) {
    let broken = broken(digest);
    for belief in digest.beliefs.values() {
        // Who was shortened from outside may believe as long as before.
        if belief.acquisition.is_hold() || broken.contains_key(&belief.acquisition) {
            continue;
        }
        for (place, commit) in digest.commits.iter().enumerate() {
            if commit.node != belief.node
                || commit.acquisition_after().as_ref() != Some(&belief.acquisition)
            {
                continue;
            }
            let next = digest.commits[place + 1..]
                .iter()
                .find(|next| next.node == commit.node);
            let until = next.map_or(digest.end, |next| next.at);
            if let Some(end) = stored_end(digest, commit)
                && let Some(at) = believed_past(digest, belief, commit.at, until, end)
            {
                violations.push(Violation {
                    at,
                    rule: Rule::Covered,
                    what: format!(
                        "{} believes in {}, whose Lease @{} has ended for all to see",
                        belief.client, belief.acquisition, commit.version
                    ),
                });
                break;
            }
        }
    }
}

/// When the Lease ends for all others, in microseconds of Unix time; `None` if they go by their own
/// eyes.
fn stored_end(digest: &Index, commit: &Commit) -> Option<i64> {
    let times = |commit: &Commit| {
        let after = commit.after.as_ref()?;
        Some((after.renewed?, after.duration))
    };
    let (renewed, duration) = times(commit)?;
    if is_elected(digest) {
        return None;
    }
    let budget = i64::try_from(CLOCK_BUDGET.as_micros()).unwrap_or(0);
    Some(renewed + i64::from(duration) * 1_000_000 + budget)
}

fn is_elected(digest: &Index) -> bool {
    let mut ops = digest.ops.values();
    ops.any(|op| matches!(op.call, Call::Campaign(_)))
}

/// When it is believed first between `from` and `until` though it has ended at `end`.
fn believed_past(
    digest: &Index,
    belief: &Belief,
    from: Time,
    until: Time,
    end: i64,
) -> Option<Time> {
    belief.spans.iter().find_map(|&(begins, ends)| {
        let (begins, ends) = (begins.max(from), ends.min(until));
        if begins >= ends {
            return None;
        }
        let ahead = digest.servers_ahead(ends).iter().max().copied();
        let over = Time::from_micros(end - EPOCH - ahead.unwrap_or(0));
        // The moment itself, by clocks that drift.
        (over + Duration::from_millis(10) < ends).then(|| over.max(begins))
    })
}

/// Success is reported with at least a third of the duration left.
pub(super) fn time_left(digest: &Index, violations: &mut Vec<Violation>) {
    for (&id, op) in &digest.ops {
        let Some((returned, ending)) = &op.returned else {
            continue;
        };
        for (node, acquisition) in ending.acquisitions(&op.node) {
            let late = too_late(digest, op.client, node, acquisition, *returned);
            if let Some(what) = late.filter(|_| !acquisition.is_hold()) {
                violations.push(Violation {
                    at: *returned,
                    rule: Rule::TimeLeft,
                    what: format!("{} of {acquisition}, {what}", told(id, &op.call)),
                });
            }
        }
    }
}

fn told(id: OpId, call: &Call) -> String {
    format!("op{} ({call}) told the success", id.0)
}

/// How little was left at `returned`, if it was too little.
fn too_late(
    digest: &Index,
    client: ClientId,
    node: &str,
    acquisition: &Acquisition,
    returned: Time,
) -> Option<String> {
    let mut back = digest.commits.iter().rev();
    // The answer may have been lost, and another's annotation be what was read.
    let last = back.find(|commit| {
        *commit.node == *node
            && commit.at <= returned
            && commit.acquisition_after().as_ref() == Some(acquisition)
            && digest.requests_of(client, commit).next().is_some()
    })?;
    let sent = digest
        .requests_of(client, last)
        .map(|request| request.sent)
        .max()?;
    // What no clock of its own counted, it can't know.
    let halted = |still: &MachinePause| still.how == Freeze::Halted;
    if digest.stood_still(client, sent, returned).any(halted) {
        return None;
    }
    let paused = |still: &MachinePause| still.how == Freeze::Paused;
    let tolerance = match digest.stood_still(client, sent, returned).any(paused) {
        // It goes by the server's time then.
        true => CLOCK_BUDGET,
        false => Duration::from_millis(10),
    };
    let duration = last.after.as_ref().map_or(0, |after| after.duration);
    let duration = Duration::from_secs(duration.into());
    let latest = sent + (duration - duration / 3) + tolerance;
    (returned > latest).then(|| {
        let took = Duration::from_micros((returned - sent).unsigned_abs());
        format!("{took:?} after it asked for {duration:?}")
    })
}

/// Whether a belief is one that the library ends.
pub(super) fn is_kept(belief: &Belief) -> bool {
    match belief.ends {
        BeliefEnd::Deadline(_) => false,
        BeliefEnd::Guard | BeliefEnd::Notification => true,
    }
}
