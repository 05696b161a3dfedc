//! Whom somebody waits for, in a line; and for how long, in a shorter one.

use maintenance_lease::Blocked;
use maintenance_lease::protocol::{Instant, Now, Refusal};

use super::refusal::{self, Asked};
use super::time::clock;
use super::verb::Verb;
use crate::cli::program::Program;
use crate::terminal::escape;

/// How far somebody came who wants several nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    /// So many are theirs.
    pub(crate) taken: usize,
    /// Of so many.
    pub(crate) all: usize,
}

/// A line with all there is to say.
pub(crate) fn line(blocked: &Blocked, queue: Queue, asked: Asked<'_>) -> String {
    let what = refusal::message(&blocked.refused, asked);
    let when = match blocked.earliest {
        _ if is_hold(blocked) => "free when the hold is ended".to_owned(),
        _ if is_deleting(blocked) => "free when its Lease is gone".to_owned(),
        Some(at) if at > asked.now.earliest => format!(
            "free when it is released, or from {} on at the earliest",
            clock(at, asked.now.latest)
        ),
        Some(_) => "free at any moment".to_owned(),
        None => "free when it is released".to_owned(),
    };
    let way_on = way_on(blocked, asked.program).map(|way_on| format!("; {way_on}"));
    format!(
        "waiting{}: {what}; {when}{}",
        so_far(queue),
        way_on.unwrap_or_default()
    )
}

/// How to go on under a lease of the caller's own, instead of waiting for it.
fn way_on(blocked: &Blocked, program: &Program) -> Option<String> {
    let node = &blocked.refused.node;
    is_own(blocked).then(|| format!("--reentry goes on under it, {program} release {node} ends it"))
}

/// How long it still takes, with a countdown to `now`: what stands below the line.
pub(crate) fn short(blocked: &Blocked, queue: Queue, now: Now) -> String {
    let when = match blocked.earliest {
        _ if is_hold(blocked) => "free when the hold is ended".to_owned(),
        _ if is_deleting(blocked) => "free when its Lease is gone".to_owned(),
        Some(at) if at > now.earliest => {
            format!("free in {} at the earliest", countdown(at, now.earliest))
        }
        Some(_) => "free at any moment".to_owned(),
        None => "free on release".to_owned(),
    };
    let yours = match is_own(blocked) {
        true => "; it is yours: --reentry, or release it",
        false => "",
    };
    format!("waiting{}: {when}{yours}", so_far(queue))
}

/// How many of many nodes there are by now.
pub(crate) fn count(verb: Verb, queue: Queue, refused: usize) -> String {
    let Queue { taken, all } = queue;
    let refused = match refused {
        0 => String::new(),
        refused => format!(", {refused} refused"),
    };
    format!("{taken} of {all} nodes {}{refused}", verb.participle())
}

/// That changes can't be seen as they happen.
pub(crate) fn blind(why: &str) -> String {
    format!(
        "changes can't be watched, but are looked for: {}",
        escape(why)
    )
}

fn is_own(blocked: &Blocked) -> bool {
    blocked.refused.refusal == Refusal::HeldByCaller
}

fn is_hold(blocked: &Blocked) -> bool {
    matches!(
        blocked.refused.refusal,
        Refusal::AdminHold | Refusal::OwnHold
    )
}

fn is_deleting(blocked: &Blocked) -> bool {
    blocked.refused.refusal == Refusal::Deleting
}

fn so_far(queue: Queue) -> String {
    match queue {
        Queue { all: 0 | 1, .. } => String::new(),
        Queue { taken, all } => format!(", {taken} of {all} taken"),
    }
}

/// The time from `now` to `at` as a clock that runs backwards shows it, rounded up.
fn countdown(at: Instant, now: Instant) -> String {
    let seconds = (at - now).ceil_seconds();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_countdown_shows_every_second() {
        let shown = |micros: i64| countdown(Instant::from_micros(micros), Instant::from_micros(0));
        assert_eq!(shown(1), "0:01");
        assert_eq!(shown(59_000_001), "1:00");
        assert_eq!(shown(753_000_000), "12:33");
        assert_eq!(shown(3_723_000_000), "1:02:03");
    }
}
