//! Nodes and their locks as a table for people, as `kubectl get` prints one.

mod table;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{NodeLease, NodeRow, Sight};
use other_tools::Finding;
use pod_safety::node::Health;

pub(crate) use self::table::Table;
use crate::text::escape;
use crate::words::activity;
use crate::words::fencing_marks::Marks;
use crate::words::health;
use crate::words::holder::of_node;
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

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Node,
    State,
    Holder,
    Reason,
    Age,
    Left,
    Status,
    Heartbeat,
    Acquired,
    Renewed,
    Transitions,
    LastHolder,
    LastReason,
    Fencing,
    OtherTools,
    /// The label with this index among those requested.
    Label(usize),
}

impl Column {
    fn header(self, labels: &[String]) -> String {
        let fixed = match self {
            Self::Node => "NODE",
            Self::State => "STATE",
            Self::Holder => "HOLDER",
            Self::Reason => "REASON",
            Self::Age => "AGE",
            Self::Left => "LEFT",
            Self::Status => "STATUS",
            Self::Heartbeat => "HEARTBEAT",
            Self::Acquired => "ACQUIRED",
            Self::Renewed => "RENEWED",
            Self::Transitions => "TRANSITIONS",
            Self::LastHolder => "LAST HOLDER",
            Self::LastReason => "LAST REASON",
            Self::Fencing => "FENCING",
            Self::OtherTools => "OTHER TOOLS",
            // As kubectl prints it.
            Self::Label(index) => {
                let name = labels[index].rsplit('/').next().unwrap_or_default();
                return escape(&name.to_uppercase());
            }
        };
        fixed.to_owned()
    }

    /// Whether it shows something that must not be overlooked.
    fn alarms(self, view: &View<'_>) -> bool {
        self == Self::Status && matches!(view.health, Some(Health::KubeletAlive { .. }))
    }

    fn cell(self, view: &View<'_>, labels: &[String], now: Now) -> String {
        let held = view.lease.filter(|lease| lease.holder().is_some());
        match self {
            Self::Node => escape(view.node),
            Self::State => Label::of(view.lease, now).word().to_owned(),
            Self::Holder => held.and_then(NodeLease::holder).map_or_else(none, of_node),
            Self::Reason => text(held.and_then(NodeLease::reason)),
            Self::Age => match held {
                None => none(),
                Some(lease) => lease.acquired().map_or_else(unknown, |acquired| {
                    span(now.latest - Instant::from(acquired))
                }),
            },
            Self::Left => view.lease.map_or_else(none, |lease| left(lease, now)),
            Self::Status => match view.row {
                Sight::Row(row) => health::status(row, view.health, now),
                Sight::Missing => health::words(&Health::Gone, now),
                Sight::Forbidden | Sight::Unread => unknown(),
            },
            Self::Heartbeat => match view.heartbeat {
                Heartbeat::At(Instant::UNREADABLE) => unreadable(),
                Heartbeat::At(instant) => span(now.latest - instant),
                Heartbeat::Missing => none(),
                Heartbeat::Unknown => unknown(),
            },
            Self::Acquired => date(held, NodeLease::acquired),
            Self::Renewed => date(held, NodeLease::renewed),
            Self::Transitions => view
                .lease
                .map_or_else(none, |lease| lease.transitions().to_string()),
            Self::LastHolder => view
                .lease
                .and_then(NodeLease::last_holder)
                .filter(|last| !last.is_empty())
                .map_or_else(none, of_node),
            Self::LastReason => text(view.lease.and_then(last_reason)),
            Self::Fencing => match (view.marks, view.health) {
                (Some(marks), _) => marks.words(now).unwrap_or_else(none),
                (None, Some(_)) => none(),
                (None, None) => unknown(),
            },
            Self::OtherTools => match (view.findings, view.health) {
                (Some(findings), _) => activity::line(findings, now).unwrap_or_else(none),
                (None, _) if view.row.row().is_some_and(NodeRow::is_cordoned) => {
                    "cordoned".to_owned()
                }
                (None, Some(_)) => none(),
                (None, None) => unknown(),
            },
            Self::Label(index) => match view.row {
                Sight::Row(row) => text(row.labels.get(&labels[index]).map(String::as_str)),
                Sight::Missing => none(),
                Sight::Forbidden | Sight::Unread => unknown(),
            },
        }
    }
}

pub(super) fn none() -> String {
    "-".to_owned()
}

pub(super) fn unknown() -> String {
    "<unknown>".to_owned()
}

pub(super) fn unreadable() -> String {
    "<unreadable>".to_owned()
}

pub(super) fn text(text: Option<&str>) -> String {
    match text {
        None | Some("") => none(),
        Some(text) => escape(text),
    }
}

/// Why a free Lease was held, or the message that was left when it was released.
pub(crate) fn last_reason(lease: &NodeLease) -> Option<&str> {
    lease.reason().filter(|_| lease.holder().is_none())
}

fn date(lease: Option<&NodeLease>, time: impl Fn(&NodeLease) -> Option<DateTime<Utc>>) -> String {
    match lease {
        None => none(),
        Some(lease) => time(lease).map_or_else(unknown, |time| {
            time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
        }),
    }
}

/// How much time is left until a lock ends or a hold is expected to end, or how long ago that was.
pub(super) fn time_left(lease: &NodeLease, now: Now) -> String {
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
pub(super) fn left(lease: &NodeLease, now: Now) -> String {
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

/// kubectl's words for an empty table.
pub(crate) const NOTHING_FOUND: &str = "No resources found";

/// Nodes that a table leaves out because they are free and ready.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) nodes: usize,
    /// How many of them are cordoned.
    pub(crate) cordoned: usize,
}

impl LeftOut {
    /// How many they are, beside `shown` nodes in the table.
    pub(crate) fn words(self, shown: usize) -> String {
        let other = if shown > 0 { "other " } else { "" };
        let cordoned = match (self.nodes, self.cordoned) {
            (_, 0) => String::new(),
            (1, _) => " (cordoned)".to_owned(),
            (_, cordoned) => format!(" ({cordoned} cordoned)"),
        };
        match self.nodes {
            1 => format!("1 {other}node is free and ready{cordoned}; show it with --all"),
            nodes => {
                format!("{nodes} {other}nodes are free and ready{cordoned}; show them with --all")
            }
        }
    }
}

/// How many nodes are in which state, such as `12 nodes: 9 free, 2 locked, 1 on hold`, and how many are
/// left out.
pub(crate) fn summary(views: &[View<'_>], left_out: LeftOut, now: Now) -> String {
    let counts = || counts(views, now);
    match (views.len(), left_out.nodes) {
        (0, _) => left_out.words(0),
        (_, 0) => counts(),
        (shown, _) => format!("{}. {}", counts(), left_out.words(shown)),
    }
}

fn counts(views: &[View<'_>], now: Now) -> String {
    let count = |label: Label| {
        views
            .iter()
            .filter(|view| Label::of(view.lease, now) == label)
            .count()
    };
    let overdue = count(Label::OnHoldOverdue);
    let on_hold = match overdue {
        0 => "on hold".to_owned(),
        _ => format!("on hold ({overdue} overdue)"),
    };
    let parts: Vec<String> = [
        (count(Label::Free), "free"),
        (count(Label::Locked), "locked"),
        (count(Label::Expired), "expired"),
        (count(Label::OnHold) + overdue, &on_hold),
    ]
    .into_iter()
    .filter(|&(count, _)| count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    let nodes = views.len();
    let s = if nodes == 1 { "" } else { "s" };
    format!("{nodes} node{s}: {}", parts.join(", "))
}
