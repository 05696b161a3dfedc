//! What a verb did to a node, in words.

use maintenance_lease::protocol::{Instant, Now, Span, State};
use maintenance_lease::{Aside, Change, Done, NodeLease};

use super::refusal::{about, person};
use super::time::{clock, span};
use crate::cli::writing::DryRunMode;

/// The result, in a line; `broken` where it was another's lock.
pub(crate) fn line(change: &Change, broken: bool, now: Now, dry_run: DryRunMode) -> String {
    format!(
        "node/{} {}{}",
        change.node,
        what(change, broken, now),
        dry_run.suffix()
    )
}

fn what(change: &Change, broken: bool, now: Now) -> String {
    let holder = |lease: &Option<NodeLease>| lease.as_ref().map(person).unwrap_or_default();
    let is_hold = change
        .lease
        .as_ref()
        .is_some_and(|lease| lease.state(now) == State::AdminHold);
    match change.done {
        Done::Acquired if is_hold => {
            format!("on hold by {}{}", holder(&change.lease), until(change, now))
        }
        Done::Renewed if is_hold => {
            format!(
                "hold updated by {}{}",
                holder(&change.lease),
                until(change, now)
            )
        }
        Done::Acquired => format!(
            "acquired by {}{}",
            holder(&change.lease),
            until(change, now)
        ),
        Done::Renewed => format!("renewed by {}{}", holder(&change.lease), until(change, now)),
        Done::AlreadyHeld => "is on your own hold already".to_owned(),
        Done::Released if change.state_before == State::AdminHold && broken => {
            format!("hold of {} ended", holder(&change.before))
        }
        Done::Released if change.state_before == State::AdminHold => "hold ended".to_owned(),
        Done::Released if broken => format!("released, lease of {} broken", holder(&change.before)),
        Done::Released => "released".to_owned(),
        Done::AlreadyFree => "already free".to_owned(),
    }
}

/// Until when it is held, or on hold.
fn until(change: &Change, now: Now) -> String {
    let hold_until = change.lease.as_ref().and_then(NodeLease::hold_until);
    let is_hold = change
        .lease
        .as_ref()
        .is_some_and(|lease| lease.state(now) == State::AdminHold);
    match (is_hold, hold_until, change.until()) {
        (true, Some(until), _) => format!(", meant until {}", clock(until.into(), now.latest)),
        (false, _, Some(until)) => format!(
            " until {} ({})",
            clock(until, now.latest),
            span(rounded(until - now.latest))
        ),
        _ => String::new(),
    }
}

/// A length as it was asked for, not a few milliseconds less.
fn rounded(length: Span) -> Span {
    Span::micros((length.as_micros() + 500_000).div_euclid(1_000_000) * 1_000_000)
}

/// Who did not finish: whose expired lease was taken, or one's own that was renewed late. `None`
/// where nothing had expired.
pub(crate) fn expired(change: &Change, now: Now) -> Option<String> {
    let before = change.before.as_ref()?;
    if !matches!(change.state_before, State::Expired { .. }) {
        return None;
    }
    let about = about(before, change.state_before, now);
    match change.done {
        Done::Acquired => Some(format!(
            "node/{} was left unfinished by {}{about}{}",
            change.node,
            person(before),
            node_words(change)
        )),
        Done::Renewed => Some(format!(
            "node/{}: you held it{about}; nobody took it meanwhile",
            change.node
        )),
        Done::AlreadyHeld | Done::Released | Done::AlreadyFree => None,
    }
}

/// What is wrong with the node that somebody left behind.
fn node_words(change: &Change) -> String {
    let Some(row) = &change.row else {
        return String::new();
    };
    match (row.is_ready(), row.is_cordoned()) {
        (true, false) => String::new(),
        (false, false) => "; the node is NotReady".to_owned(),
        (true, true) => "; the node is still cordoned".to_owned(),
        (false, true) => "; the node is NotReady and still cordoned".to_owned(),
    }
}

/// Until when somebody whose lock was broken may still act; `None` where it was over anyway.
pub(crate) fn still_acting(change: &Change, now: Now) -> Option<String> {
    let before = change.before.as_ref()?;
    let may = format!("{} may still act on node/{}", person(before), change.node);
    match change.state_before {
        State::Held { until } if until == Instant::UNREADABLE => Some(format!(
            "{may} until they notice: their lease has no readable end"
        )),
        State::Held { until } => Some(format!(
            "{may} until {}, or until they notice",
            clock(until, now.latest)
        )),
        State::AdminHold => Some(format!("{may} until they notice: a hold has no end")),
        State::Free | State::Expired { .. } => None,
    }
}

/// What else happened on the way, on these nodes.
pub(crate) fn aside(aside: Aside, nodes: &[String]) -> String {
    let (node, more) = match nodes {
        [] => return String::new(),
        [node] => (node, String::new()),
        [node, rest @ ..] => (node, format!(" and {} more", rest.len())),
    };
    match aside {
        Aside::NamespaceCreated => format!("namespace/{} created", maintenance_lease::NAMESPACE),
        Aside::LeaseCreated => format!("lease/{node}{more} created"),
        Aside::NodeUnreadable => format!(
            "node/{node}{more} can't be read with your rights: it may not exist, and then its \
             Lease stays behind"
        ),
        Aside::AnswerLost => format!(
            "node/{node}{more}: the server's answer was lost; another read shows that it was done"
        ),
    }
}
