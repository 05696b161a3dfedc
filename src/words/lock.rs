//! Why a node is locked, since when and until when.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, SKEW_BUDGET, Span, State};

use super::state::flag_words;
use super::time::{clock, remaining, span};
use crate::text::escape;

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
        State::Held { until } if is_ending(state, now) => Some(format!(
            "expires now; anyone may acquire it after {}",
            at(until + SKEW_BUDGET)
        )),
        State::Held { until } => Some(format!(
            "until {}, {} left",
            at(until),
            remaining(until - now.earliest)
        )),
        State::Expired { since: Some(since) } => Some(format!(
            "expired at {}, {} ago",
            at(since),
            span(now.latest - since)
        )),
        State::Expired { since: None } => Some("no times recorded".to_owned()),
        State::AdminHold => lease.hold_until().map(Instant::from).map(|until| {
            if until < now.earliest {
                let overdue = span(now.earliest - until);
                format!("expected until {}, overdue by {overdue}", at(until))
            } else {
                format!("expected until {}", at(until))
            }
        }),
        State::Free => None,
    };
    let flags = flag_words(lease, now);
    let is_unreadable = state
        == State::Held {
            until: Instant::UNREADABLE,
        };
    let flags = flags
        .into_iter()
        .filter(|flag| !is_unreadable || *flag != "unreadable time")
        .map(ToOwned::to_owned);
    let parts: Vec<String> = since.into_iter().chain(until).chain(flags).collect();
    match &parts[..] {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}

/// Whether its end has come, and nobody else may acquire it yet because clocks may differ.
pub(crate) fn is_ending(state: State, now: Now) -> bool {
    const ROUNDED: Span = Span::micros(500_000);
    matches!(state, State::Held { until } if until < now.earliest + ROUNDED)
}

/// The reason, quoted, and the ticket.
pub(crate) fn why(lease: &NodeLease) -> String {
    let reason = lease.reason().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": \"{}\"", escape(reason)));
    let ticket = lease.ticket().filter(|ticket| !ticket.is_empty());
    let ticket = ticket.map(|ticket| format!(", ticket {}", escape(ticket)));
    reason.into_iter().chain(ticket).collect()
}
