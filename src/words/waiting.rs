//! What a caller waits for, in one line; and for how long, in a shorter one.

use std::time::Duration;

use maintenance_lease::protocol::{Instant, Now, Refusal, Span};
use maintenance_lease::{Blocked, Waiter};
use pod_safety::words::age;

use super::holder_name::{named, person};
use super::refusal;
use super::request::RequestContext;
use super::time::{clock, length};
use crate::error::Verb;
use crate::text::escape;
use crate::words::hint_command::Program;

/// The progress of a command with several nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetWait {
    /// The number of nodes that are locked, or otherwise done.
    pub(crate) taken: usize,
    /// The number of nodes in all.
    pub(crate) all: usize,
}

/// The full line.
pub(crate) fn line(blocked: &Blocked, request: RequestContext<'_>) -> String {
    let what = refusal::cause(&blocked.refused, request);
    let now = request.now;
    let when = when(blocked, now, |at| {
        format!("when released, or at {}", clock(at, now.latest))
    });
    let alternative =
        alternative(blocked, request.program).map(|alternative| format!("; {alternative}"));
    format!(
        "waiting for node/{}: {what}; {when}{}",
        blocked.refused.node,
        alternative.unwrap_or_default()
    )
}

/// How to work under the caller's own lock instead of waiting for it.
fn alternative(blocked: &Blocked, program: &Program) -> Option<String> {
    let node = &blocked.refused.node;
    let (end, verb) = match is_hold(blocked) {
        true => ("end", "unhold"),
        false => ("release", "release"),
    };
    is_own(blocked).then(|| {
        format!(
            "{end} it with `{}`, or use --reentry instead",
            program.run(format_args!("{verb} {node}"))
        )
    })
}

/// The remaining time, as a countdown at `now`; the line below the full one.
pub(crate) fn short(blocked: &Blocked, now: Now) -> String {
    let when = when(blocked, now, |at| {
        format!("in {}", countdown(at, now.earliest))
    });
    let whom = match (&blocked.refused.lease, is_own(blocked)) {
        (_, true) => " for your own lock".to_owned(),
        (Some(lease), _) if lease.holder().is_some() => format!(" for {}", person(lease)),
        _ => String::new(),
    };
    format!("waiting{whom}: {when}")
}

/// How long a wait may still last, after what it waits for.
pub(crate) fn time_limit(left: Duration, now: Now) -> String {
    let end = now.earliest + Span::from(left);
    format!(" (times out in {})", countdown(end, now.earliest))
}

/// When the node will be free; `at` puts the end of its lock into words.
fn when(blocked: &Blocked, now: Now, at: impl FnOnce(Instant) -> String) -> String {
    match blocked.earliest {
        _ if is_hold(blocked) => "free when the hold is ended".to_owned(),
        _ if blocked.refused.refusal == Refusal::Deleting => {
            "free when its Lease is gone".to_owned()
        }
        Some(end) if end > now.earliest => format!("free {} unless renewed", at(end)),
        Some(_) => "free at any moment".to_owned(),
        None => "free when released".to_owned(),
    }
}

/// Somebody who may be waiting.
pub(crate) fn waiter(waiter: &Waiter, now: Now) -> String {
    let ago = age(now.latest - waiter.since);
    format!("{} began to wait {ago} ago", named(&waiter.identity))
}

/// The number of nodes so far, if there are many.
pub(crate) fn count(verb: Verb, set: SetWait, failed: usize) -> String {
    let SetWait { taken, all } = set;
    let failed = match failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!("{taken} of {all} nodes {}{failed}", verb.participle())
}

/// A warning that changes can't be watched.
pub(crate) fn watch_failed(why: &str) -> String {
    format!(
        "could not watch for changes, polling instead: {}",
        escape(why)
    )
}

/// A warning that changes of nodes can't be watched at all.
pub(crate) fn nodes_unwatched(why: &str) -> String {
    format!("could not watch nodes: {}", escape(why))
}

/// A watch goes on after a failure.
pub(crate) const RETRYING: &str = "retrying until the API server answers";

fn is_own(blocked: &Blocked) -> bool {
    matches!(
        blocked.refused.refusal,
        Refusal::HeldByCaller | Refusal::OwnHold
    )
}

fn is_hold(blocked: &Blocked) -> bool {
    matches!(
        blocked.refused.refusal,
        Refusal::AdminHold | Refusal::OwnHold
    )
}

/// `line` with the elapsed time.
pub(crate) fn with_elapsed(line: &str, elapsed: Duration) -> String {
    let elapsed = Duration::from_secs(elapsed.as_secs());
    format!("{line} ({})", length(Span::from(elapsed)))
}

/// The time from `now` to `at` as a countdown, rounded up.
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
    fn what_takes_long_is_shown_in_whole_seconds() {
        let line = with_elapsed("waiting", Duration::from_millis(61_900));
        assert_eq!(line, "waiting (61s)");
    }

    #[test]
    fn a_countdown_shows_every_second() {
        let shown = |micros: i64| countdown(Instant::from_micros(micros), Instant::from_micros(0));
        assert_eq!(shown(1), "0:01");
        assert_eq!(shown(59_000_001), "1:00");
        assert_eq!(shown(753_000_000), "12:33");
        assert_eq!(shown(3_723_000_000), "1:02:03");
    }
}
