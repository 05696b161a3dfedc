//! What a confirmation shows about the locks that are at stake.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, State};
use pod_safety::fencing::is_of_fencing;

use super::holder::person;
use super::refusal::{fenced, why};
use super::time::clock_and_utc;

/// Who holds a node, since when and until when, in local time and in UTC, and why.
pub(crate) fn fact(lease: &NodeLease, now: Now) -> String {
    let state = lease.state(now);
    let at = |instant: Instant| clock_and_utc(instant, now.latest);
    let is_of_fencing = is_of_fencing(lease, now);
    let has = match state {
        State::AdminHold if is_of_fencing => fenced::stands(lease),
        State::AdminHold => "is on hold by",
        State::Expired { .. } => "has an expired lock of",
        State::Held { .. } | State::Free => "is locked by",
    };
    let since = lease
        .acquired()
        .map(|acquired| format!(" since {}", at(acquired.into())))
        .unwrap_or_default();
    let until = match state {
        State::Held { until } => format!(" until {}", at(until)),
        State::Expired { since: Some(since) } => format!(", expired at {}", at(since)),
        State::AdminHold if is_of_fencing => format!(" {}", fenced::UNTIL),
        State::AdminHold => lease
            .hold_until()
            .map(|until| format!(", expected until {}", at(until.into())))
            .unwrap_or_default(),
        State::Expired { since: None } | State::Free => String::new(),
    };
    format!(
        "  node/{} {has} {}{since}{until}{}",
        lease.node(),
        person(lease),
        why(lease)
    )
}

/// `count` nodes, such as `3 nodes`.
pub(crate) fn nodes(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
