//! What a verb did to a node, in words.

use maintenance_lease::protocol::{Instant, Now, Span, State};
use maintenance_lease::{Aside, Change, Done, NodeLease};

use super::refusal::about;
use super::time::{clock, span};
use crate::cli::writing::DryRunMode;
use crate::terminal::escape;

/// The result, in a line.
pub(crate) fn line(change: &Change, now: Now, dry_run: DryRunMode) -> String {
    let node = &change.node;
    let holder = change
        .lease
        .as_ref()
        .and_then(NodeLease::holder)
        .map(escape)
        .unwrap_or_default();
    let suffix = dry_run.suffix();
    let is_hold = change
        .lease
        .as_ref()
        .is_some_and(|lease| lease.state(now) == State::AdminHold);
    let until = match change.until() {
        Some(until) if !is_hold => format!(
            " until {} ({})",
            clock(until, now.latest),
            span(rounded(until - now.latest))
        ),
        _ => String::new(),
    };
    match change.done {
        Done::Acquired if is_hold => format!("node/{node} on hold by {holder}{suffix}"),
        Done::Renewed if is_hold => format!("node/{node} hold updated by {holder}{suffix}"),
        Done::Acquired => format!("node/{node} acquired by {holder}{until}{suffix}"),
        Done::Renewed => format!("node/{node} renewed by {holder}{until}{suffix}"),
        Done::AlreadyHeld => format!("node/{node} is already on your own hold{suffix}"),
        Done::Released if change.state_before == State::AdminHold => {
            format!("node/{node} hold ended{suffix}")
        }
        Done::Released => format!("node/{node} released{suffix}"),
        Done::AlreadyFree => format!("node/{node} already free{suffix}"),
    }
}

/// A length as it was asked for, not a few milliseconds less.
fn rounded(length: Span) -> Span {
    Span::micros((length.as_micros() + 500_000).div_euclid(1_000_000) * 1_000_000)
}

/// Whose unfinished work was taken over; `None` where nobody's was.
pub(crate) fn takeover(change: &Change, now: Now) -> Option<String> {
    let before = change.before.as_ref()?;
    if change.done != Done::Acquired || !matches!(change.state_before, State::Expired { .. }) {
        return None;
    }
    let holder = escape(before.holder()?);
    let mut node_words = Vec::new();
    if let Some(row) = &change.row {
        if !row.is_ready() {
            node_words.push("NotReady");
        }
        if row.is_cordoned() {
            node_words.push("still cordoned");
        }
    }
    let node_words = if node_words.is_empty() {
        String::new()
    } else {
        format!("; the node is {}", node_words.join(" and "))
    };
    Some(format!(
        "node/{} had an expired lease of {holder}{}: they did not finish{node_words}",
        change.node,
        about(before, change.state_before, now),
    ))
}

/// Until when somebody whose lock was broken may still act; `None` where nobody's was.
pub(crate) fn still_acting(change: &Change, now: Now) -> Option<String> {
    let before = change.before.as_ref()?;
    let holder = escape(before.holder()?);
    match change.state_before {
        State::Held { until } if until == Instant::UNREADABLE => Some(format!(
            "{holder} may still act on node/{} until they notice: their lease has no readable end",
            change.node
        )),
        State::Held { until } => Some(format!(
            "{holder} may still act on node/{} until {}, or until they notice",
            change.node,
            clock(until, now.latest)
        )),
        State::AdminHold => Some(format!(
            "{holder} may still act on node/{} until they notice: a hold has no end",
            change.node
        )),
        State::Free | State::Expired { .. } => None,
    }
}

/// What else happened on the way; what matters once for all nodes is said once by the caller.
pub(crate) fn aside(aside: Aside, node: &str) -> String {
    match aside {
        Aside::NamespaceCreated => {
            format!("namespace/{} created", maintenance_lease::NAMESPACE)
        }
        Aside::LeaseCreated => format!("lease/{node} created"),
        Aside::NodeUnreadable => format!(
            "node/{node} can't be read with your rights: it may not exist, and its Lease won't be collected with it"
        ),
        Aside::AnswerLost => {
            format!(
                "node/{node}: the server's answer was lost; another read shows that it was done"
            )
        }
    }
}
