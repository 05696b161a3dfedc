//! Why a node is locked, since when and until when.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, State};
use pod_safety::words::age;

use super::state::LockFlag;
use super::time::{clock, remaining};
use crate::text::escape;
use crate::words::holder::HoldingCommand;

/// The reason, and in parentheses since when and until when. The reason comes first, because people look
/// for it first.
pub(crate) fn about(lease: &NodeLease, state: State, now: Now) -> String {
    format!("{}{}", why(lease), times(lease, state, now))
}

fn times(lease: &NodeLease, state: State, now: Now) -> String {
    let at = |instant: Instant| clock(instant, now.latest);
    let since = lease
        .acquired()
        .map(|acquired| format!("since {}", at(acquired.into())));
    let until = match state {
        State::Held { until } if until == Instant::UNREADABLE => {
            Some("until an unreadable time".to_owned())
        }
        State::Held { .. } if state.is_ending(now) => lease
            .takeover()
            .map(|takeover| format!("expires now; anyone may acquire it after {}", at(takeover))),
        State::Held { until } => state.left(now).map(|left| {
            format!(
                "until {}, {} left{}",
                at(until),
                remaining(left),
                renewed(lease, now)
            )
        }),
        State::Expired { since: Some(since) } => state
            .expired_for(now)
            .map(|ago| format!("expired at {}, {} ago", at(since), age(ago))),
        State::Expired { since: None } => Some("no times recorded".to_owned()),
        State::AdminHold => lease.expected_end(now).map(|until| {
            let overdue = lease.overdue_for(now).map(age);
            let overdue = overdue.map(|overdue| format!(", overdue by {overdue}"));
            format!(
                "expected until {}{}",
                at(until),
                overdue.unwrap_or_default()
            )
        }),
        State::Free => None,
    };
    let flags = LockFlag::all(lease, now);
    let is_unreadable = state
        == State::Held {
            until: Instant::UNREADABLE,
        };
    let flags = flags
        .into_iter()
        .filter(|flag| !is_unreadable || *flag != LockFlag::UnreadableTime)
        .map(LockFlag::words);
    let parts: Vec<String> = since.into_iter().chain(until).chain(flags).collect();
    match &parts[..] {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}

/// Said of a lock that ends later than it shows, because `with` renews it.
pub(crate) fn renewed(lease: &NodeLease, now: Now) -> &'static str {
    match lease.holder().and_then(HoldingCommand::of) {
        Some((HoldingCommand::With, _)) if lease.seems_renewed(now) => {
            ", renewed while its command runs"
        }
        _ => "",
    }
}

/// The reason, quoted, and the ticket.
pub(crate) fn why(lease: &NodeLease) -> String {
    let reason = lease.reason().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": \"{}\"", escape(reason)));
    let ticket = lease.ticket().filter(|ticket| !ticket.is_empty());
    let ticket = ticket.map(|ticket| format!(", ticket {}", escape(ticket)));
    reason.into_iter().chain(ticket).collect()
}
