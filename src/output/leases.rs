//! Leases of all kinds: who holds them, since when, until when, and their purpose.

mod entry;
mod record;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{AnyLease, NAMESPACE, NodeLease};
use pod_safety::words::age;

pub(crate) use self::entry::Entry;
pub(crate) use self::record::{LeaseList, list};
use super::grid::{self, Grid};
use crate::text::escape;
use crate::words::cells::{none, text, time_left, unknown};
use crate::words::holder_name::{named, of_node};
use crate::words::state::ShownState;
use crate::words::time::rfc3339;

/// Which columns are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Show the namespace.
    pub(crate) namespaces: bool,
    /// Show more columns.
    pub(crate) wide: bool,
    pub(crate) headers: bool,
    /// The width to fit into if the output is a terminal.
    pub(crate) fit: Option<usize>,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Namespace,
    Name,
    Holder,
    Age,
    Left,
    Purpose,
    State,
    Acquired,
    Renewed,
    Duration,
    Transitions,
}

impl Column {
    fn header(self) -> &'static str {
        match self {
            Self::Namespace => "NAMESPACE",
            Self::Name => "NAME",
            Self::State => "STATE",
            Self::Holder => "HOLDER",
            Self::Age => "AGE",
            Self::Left => "LEFT",
            Self::Purpose => "PURPOSE",
            Self::Acquired => "ACQUIRED",
            Self::Renewed => "RENEWED",
            Self::Duration => "DURATION",
            Self::Transitions => "TRANSITIONS",
        }
    }

    /// The least useful width, for narrow terminals. Names are never cut.
    fn least(self) -> Option<u16> {
        (self == Self::Purpose).then_some(16)
    }

    fn cell(self, entry: &Entry, now: Now) -> String {
        let any = entry.lease();
        let lease = any.map(|any| &any.lease);
        match self {
            Self::Namespace => escape(entry.namespace()),
            Self::Name => escape(entry.name()),
            Self::State => lease.map_or_else(none, |lease| {
                ShownState::of(Some(lease), now).word().to_owned()
            }),
            Self::Holder => any.and_then(person).unwrap_or_else(none),
            Self::Age => entry
                .since()
                .map_or_else(unknown, |since| age(now.latest - since)),
            Self::Left => any.map_or_else(none, |any| expiry(any, now)),
            Self::Purpose => text(Some(&entry.words())),
            Self::Acquired => date(lease.and_then(NodeLease::acquired)),
            Self::Renewed => date(entry.renewed().and_then(Instant::to_chrono)),
            Self::Duration => match lease.map(NodeLease::duration_seconds) {
                None | Some(0) => none(),
                Some(seconds) => format!("{seconds}s"),
            },
            Self::Transitions => lease.map_or_else(none, |lease| lease.transitions().to_string()),
        }
    }
}

/// The holder of a Lease; for a node on hold, without the prefix of a hold.
fn person(any: &AnyLease) -> Option<String> {
    let holder = any.lease.holder()?;
    Some(match any.namespace == NAMESPACE {
        true => of_node(holder),
        false => named(holder),
    })
}

fn date(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(none, rfc3339)
}

/// How long until it expires without a renewal, or how long ago it did. A hold may have no end.
fn expiry(any: &AnyLease, now: Now) -> String {
    let lease = &any.lease;
    match lease.state(now) {
        State::Free => none(),
        State::AdminHold if lease.hold_until().is_none() => "never".to_owned(),
        _ => time_left(lease, now),
    }
}

/// The table.
pub(crate) fn table(entries: &[Entry], layout: Layout, now: Now) -> String {
    let mut columns = vec![
        Column::Name,
        Column::Holder,
        Column::Age,
        Column::Left,
        Column::Purpose,
    ];
    if layout.namespaces {
        columns.insert(0, Column::Namespace);
    }
    if layout.wide {
        columns.extend([
            Column::State,
            Column::Acquired,
            Column::Renewed,
            Column::Duration,
            Column::Transitions,
        ]);
    }
    let as_columns = columns.iter().map(|column| grid::Column {
        header: column.header().to_owned(),
        least: column.least(),
    });
    let row = |entry| {
        columns
            .iter()
            .map(|column| column.cell(entry, now))
            .collect()
    };
    // A wide table is whole, as kubectl's is.
    let fit = layout.fit.filter(|_| !layout.wide);
    Grid::new(as_columns.collect(), layout.headers, fit)
        .rows(entries.iter().map(row))
        .join("\n")
}
