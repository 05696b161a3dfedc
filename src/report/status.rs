//! Nodes and their locks as a table for people, as `kubectl get` prints one.

#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{LONGEST_REASON, NodeLease, Sight};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::time::span;
use crate::terminal::escape;

/// Spaces between columns.
const GAP: usize = 3;

/// A reason is not cut to less.
const SHORTEST_REASON: usize = 12;

/// No cell is longer, whatever other tools wrote: that much a reason of ours may have.
const LONGEST_CELL: usize = LONGEST_REASON;

/// A node and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) node: &'a str,
    /// `None`: there is no Lease.
    pub(crate) lease: Option<&'a NodeLease>,
    pub(crate) row: &'a Sight,
    pub(crate) heartbeat: Heartbeat,
}

/// When a node's kubelet last renewed its heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    At(Instant),
    /// It has none.
    Missing,
    /// It may not be read, or nobody asked.
    Unknown,
}

/// A state as people read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Free,
    Held,
    Expired,
    Hold,
    HoldOverdue,
}

impl Label {
    fn of(lease: Option<&NodeLease>, now: Now) -> Self {
        let Some(lease) = lease else {
            return Self::Free;
        };
        match lease.state(now) {
            State::Free => Self::Free,
            State::Held { .. } => Self::Held,
            State::Expired { .. } => Self::Expired,
            State::AdminHold => match lease.hold_until() {
                Some(until) if now.earliest > Instant::from(until) => Self::HoldOverdue,
                _ => Self::Hold,
            },
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Held => "Held",
            Self::Expired => "Expired",
            Self::Hold => "Hold",
            Self::HoldOverdue => "Hold overdue",
        }
    }

    /// Its time is over.
    fn is_over(self) -> bool {
        matches!(self, Self::Expired | Self::HoldOverdue)
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
}

impl Column {
    fn header(self) -> &'static str {
        match self {
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
        }
    }

    fn cell(self, view: &View<'_>, now: Now) -> String {
        let held = view.lease.filter(|lease| lease.holder().is_some());
        match self {
            Self::Node => escape(view.node),
            Self::State => Label::of(view.lease, now).word().to_owned(),
            Self::Holder => text(held.and_then(NodeLease::holder)),
            Self::Reason => text(held.and_then(NodeLease::reason)),
            Self::Age => match held {
                None => none(),
                Some(lease) => lease.acquired().map_or_else(unknown, |acquired| {
                    span(now.latest - Instant::from(acquired))
                }),
            },
            Self::Left => held.map_or_else(none, |lease| left(lease, now)),
            Self::Status => match view.row {
                Sight::Row(row) => escape(&row.status),
                Sight::Missing => "<gone>".to_owned(),
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
            Self::LastHolder => text(view.lease.and_then(NodeLease::last_holder)),
        }
    }
}

fn none() -> String {
    "<none>".to_owned()
}

fn unknown() -> String {
    "<unknown>".to_owned()
}

fn unreadable() -> String {
    "<unreadable>".to_owned()
}

fn text(text: Option<&str>) -> String {
    match text {
        None | Some("") => none(),
        Some(text) => cut(&escape(text), LONGEST_CELL),
    }
}

fn date(lease: Option<&NodeLease>, time: impl Fn(&NodeLease) -> Option<DateTime<Utc>>) -> String {
    match lease {
        None => none(),
        Some(lease) => time(lease).map_or_else(unknown, |time| {
            time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
        }),
    }
}

/// How much time is left, or how long it has been over; and what is odd about that.
fn left(lease: &NodeLease, now: Now) -> String {
    let until = match lease.state(now) {
        State::Free => return none(),
        State::Held { until } => Some(until),
        State::Expired { since } => since,
        State::AdminHold => match lease.hold_until() {
            Some(until) => Some(Instant::from(until)),
            None => return none(),
        },
    };
    let mut words = match until {
        None => unknown(),
        Some(Instant::UNREADABLE) => return unreadable(),
        Some(until) if Label::of(Some(lease), now).is_over() => {
            format!("{} ago", span(now.earliest - until))
        }
        Some(until) => span(until - now.earliest),
    };
    let flags = lease.flags(now);
    if flags.clock_ahead {
        words.push_str(" (clock ahead)");
    } else if flags.overlong {
        words.push_str(" (overlong)");
    }
    words
}

/// A table that may be printed piece by piece: rows that come later stand under the same headers.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    headers: bool,
    /// The width to fit in, where somebody looks at it on a terminal.
    fit: Option<usize>,
    /// How wide each column has been so far.
    widths: Vec<usize>,
}

impl Table {
    /// With `wide`, more columns; with `nodes`, also what is known of the nodes themselves.
    pub(crate) fn new(wide: bool, nodes: bool, headers: bool, fit: Option<usize>) -> Self {
        let mut columns = vec![
            Column::Node,
            Column::State,
            Column::Holder,
            Column::Reason,
            Column::Age,
            Column::Left,
        ];
        if nodes {
            columns.push(Column::Status);
        }
        if wide {
            if nodes {
                columns.push(Column::Heartbeat);
            }
            columns.extend([
                Column::Acquired,
                Column::Renewed,
                Column::Transitions,
                Column::LastHolder,
            ]);
        }
        Self {
            widths: vec![0; columns.len()],
            columns,
            headers,
            fit,
        }
    }

    /// The text of some rows, after the headers where they are the first.
    pub(crate) fn rows(&mut self, views: &[View<'_>], now: Now) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        if std::mem::take(&mut self.headers) {
            rows.push(
                self.columns
                    .iter()
                    .map(|column| column.header().to_owned())
                    .collect(),
            );
        }
        rows.extend(views.iter().map(|view| {
            self.columns
                .iter()
                .map(|column| column.cell(view, now))
                .collect()
        }));
        self.fit(&mut rows);
        self.align(&rows)
    }

    /// Cuts reasons where the table is wider than the terminal.
    fn fit(&self, rows: &mut [Vec<String>]) {
        let Some(fit) = self.fit else {
            return;
        };
        let Some(reason) = self
            .columns
            .iter()
            .position(|&column| column == Column::Reason)
        else {
            return;
        };
        let others: usize = (0..self.columns.len())
            .filter(|&index| index != reason)
            .map(|index| {
                let seen = self.widths[index];
                let here = rows.iter().map(|row| row[index].width()).max();
                GAP + seen.max(here.unwrap_or_default())
            })
            .sum();
        let room = fit.saturating_sub(others).max(SHORTEST_REASON);
        for row in rows {
            row[reason] = cut(&row[reason], room);
        }
    }

    /// The rows as lines, each column as wide as its widest cell so far.
    fn align(&mut self, rows: &[Vec<String>]) -> String {
        for row in rows {
            for (seen, cell) in self.widths.iter_mut().zip(row) {
                *seen = cell.width().max(*seen);
            }
        }
        let mut text = String::new();
        for row in rows {
            for (cell, width) in row.iter().zip(&self.widths) {
                text.push_str(cell);
                text.extend(std::iter::repeat_n(' ', width - cell.width() + GAP));
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text.pop();
        text
    }
}

/// `text` in at most `width` columns of a terminal, its end replaced by `…` where it has more.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut kept: String = text
        .chars()
        .take_while(|c| match room.checked_sub(c.width().unwrap_or(0)) {
            Some(less) => {
                room = less;
                true
            }
            None => false,
        })
        .collect();
    kept.push('…');
    kept
}

/// How many nodes are in which state, such as `12 nodes: 9 free, 2 held, 1 on hold`.
pub(crate) fn summary(views: &[View<'_>], now: Now) -> String {
    let count = |label: Label| {
        views
            .iter()
            .filter(|view| Label::of(view.lease, now) == label)
            .count()
    };
    let overdue = count(Label::HoldOverdue);
    let on_hold = match overdue {
        0 => "on hold".to_owned(),
        _ => format!("on hold ({overdue} overdue)"),
    };
    let parts: Vec<String> = [
        (count(Label::Free), "free"),
        (count(Label::Held), "held"),
        (count(Label::Expired), "expired"),
        (count(Label::Hold) + overdue, &on_hold),
    ]
    .into_iter()
    .filter(|&(count, _)| count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    let nodes = views.len();
    let s = if nodes == 1 { "" } else { "s" };
    format!("{nodes} node{s}: {}", parts.join(", "))
}
