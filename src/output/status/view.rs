//! A node and its lock as a table shows them: the state, and cells that other tables have too.

use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{NodeLease, Sight};
use other_tools::Finding;
use pod_safety::node::Health;

use crate::text::escape;
use crate::words::fencing_marks::Marks;
use crate::words::time::{remaining, span};

/// A node and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) node: &'a str,
    /// `None`: there is no Lease.
    pub(crate) lease: Option<&'a NodeLease>,
    pub(crate) row: &'a Sight,
    pub(crate) heartbeat: Heartbeat,
    /// `None`: nothing is known beyond its row.
    pub(crate) health: Option<&'a Health>,
    /// The fencing marks on the Node; `None`: the whole object was not read.
    pub(crate) marks: Option<&'a Marks>,
    /// What other tools do to the node; `None`: the whole object was not read.
    pub(crate) findings: Option<&'a [Finding]>,
}

/// When a node's kubelet last renewed its heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    At(Instant),
    /// The node has none.
    Missing,
    /// No permission to read it, or not requested.
    Unknown,
}

/// A state as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Free,
    Locked,
    Expired,
    OnHold,
    OnHoldOverdue,
}

impl Label {
    pub(crate) fn of(lease: Option<&NodeLease>, now: Now) -> Self {
        let Some(lease) = lease else {
            return Self::Free;
        };
        match lease.state(now) {
            State::Free => Self::Free,
            State::Held { .. } => Self::Locked,
            State::Expired { .. } => Self::Expired,
            State::AdminHold if lease.is_overdue(now) => Self::OnHoldOverdue,
            State::AdminHold => Self::OnHold,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Locked => "Locked",
            Self::Expired => "Expired",
            Self::OnHold => "OnHold",
            Self::OnHoldOverdue => "OnHold overdue",
        }
    }

    /// How soon somebody should look at it: the least is the most urgent.
    pub(crate) fn urgency(self) -> i64 {
        match self {
            Self::Expired => 0,
            Self::OnHoldOverdue => 1,
            Self::OnHold => 2,
            Self::Locked => 3,
            Self::Free => 4,
        }
    }
}

pub(in crate::output) fn none() -> String {
    "-".to_owned()
}

pub(in crate::output) fn unknown() -> String {
    "<unknown>".to_owned()
}

pub(in crate::output) fn unreadable() -> String {
    "<unreadable>".to_owned()
}

/// The reason of a lock, and its ticket.
pub(super) fn reason_and_ticket(lease: &NodeLease) -> String {
    let reason = text(lease.reason());
    match lease.ticket() {
        Some(ticket) => format!("{reason} [{}]", escape(ticket)),
        None => reason,
    }
}

pub(in crate::output) fn text(text: Option<&str>) -> String {
    match text {
        None | Some("") => none(),
        Some(text) => escape(text),
    }
}

/// Why a free Lease was held, or the message that was left when it was released.
pub(crate) fn last_reason(lease: &NodeLease) -> Option<&str> {
    lease.reason().filter(|_| lease.holder().is_none())
}

/// How much time is left until a lock ends or a hold is expected to end, or how long ago that was.
pub(in crate::output) fn time_left(lease: &NodeLease, now: Now) -> String {
    match lease.expected_end(now) {
        None => unknown(),
        Some(Instant::UNREADABLE) => unreadable(),
        Some(end) if lease.is_overdue(now) => {
            format!("{} ago", span(now.earliest - end))
        }
        Some(end) => remaining(end - now.earliest),
    }
}

/// The same with the oddities of that time.
pub(in crate::output) fn left(lease: &NodeLease, now: Now) -> String {
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
        words.push_str(" (clock ahead)");
    } else if flags.overlong {
        words.push_str(" (overlong)");
    }
    words
}
