//! The cells of tables that show locks.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, State};
use pod_safety::words::age;

use super::state::LockFlag;
use super::time::remaining;
use crate::text::escape;

pub(crate) fn none() -> String {
    "-".to_owned()
}

pub(crate) fn unknown() -> String {
    "<unknown>".to_owned()
}

pub(crate) fn unreadable() -> String {
    "<unreadable>".to_owned()
}

/// The reason of a lock, and its ticket.
pub(crate) fn reason_and_ticket(lease: &NodeLease) -> String {
    let reason = text(lease.reason());
    match lease.ticket() {
        Some(ticket) => format!("{reason} [{}]", escape(ticket)),
        None => reason,
    }
}

pub(crate) fn text(text: Option<&str>) -> String {
    match text {
        None | Some("") => none(),
        Some(text) => escape(text),
    }
}

/// The note of the last release, or the reason of the last lock.
pub(crate) fn last_reason(lease: &NodeLease) -> Option<&str> {
    lease.reason().filter(|_| lease.holder().is_none())
}

/// How much time is left until a lock ends or a hold is expected to end, or how long ago that was.
pub(crate) fn time_left(lease: &NodeLease, now: Now) -> String {
    match (lease.overdue_for(now), lease.time_left(now)) {
        _ if lease.expected_end(now) == Some(Instant::UNREADABLE) => unreadable(),
        (Some(ago), _) => format!("{} ago", age(ago)),
        _ if lease.state(now).is_ending(now) => "expires now".to_owned(),
        (None, Some(left)) => remaining(left),
        (None, None) => unknown(),
    }
}

/// The same, with what is wrong with that time, such as `holder's clock ahead`.
pub(crate) fn left(lease: &NodeLease, now: Now) -> String {
    let end = lease.expected_end(now);
    match lease.state(now) {
        State::Free if lease.is_deleting() => return "being deleted".to_owned(),
        State::Free => return none(),
        State::AdminHold if end.is_none() => return none(),
        _ if end == Some(Instant::UNREADABLE) => return unreadable(),
        _ => {}
    }
    let mut words = time_left(lease, now);
    let flags = lease.flags(now);
    if lease.is_deleting() {
        words.push_str(" (being deleted)");
    } else if flags.clock_ahead {
        words.push_str(&format!(" ({})", LockFlag::ClockAhead.words()));
    } else if flags.overlong {
        words.push_str(&format!(" ({})", LockFlag::Overlong.words()));
    }
    words
}
