//! Leases of all kinds: who holds them, since when, until when, and their purpose.

mod entry;
mod record;
#[cfg(test)]
mod tests;

use crate::layout::table::{self, AlignedTable, first_to_fit};
use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{AnyLease, LeasePurpose, NAMESPACE, NodeLease};
use pod_safety::words::age;

pub(crate) use self::entry::LeaseEntry;
pub(crate) use self::record::{LeaseList, list};
use crate::text::escape;
use crate::words::cells::{none, text, time_left, unknown};
use crate::words::holder_name::{brief, named, of_node};
use crate::words::state::ShownState;
use crate::words::time::rfc3339;

/// The longest name of an API server's Lease in a narrow table.
const LONGEST_HASH: usize = 16;

/// The length of a UUID.
const UUID: usize = 36;

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

    fn cell(self, entry: &LeaseEntry, is_brief: bool, now: Now) -> String {
        let any = entry.lease();
        let lease = any.map(|any| &any.lease);
        match self {
            Self::Namespace => escape(entry.namespace()),
            Self::Name if is_brief => brief_name(entry),
            Self::Name => escape(entry.name()),
            Self::State => lease.map_or_else(none, |lease| {
                ShownState::of(Some(lease), now).word().to_owned()
            }),
            Self::Holder if is_brief => any.and_then(brief_holder).unwrap_or_else(none),
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

/// The name. The Lease of an API server is called by a hash, which nobody types, so its end is left out.
fn brief_name(entry: &LeaseEntry) -> String {
    let purpose = entry.lease().map(AnyLease::purpose);
    let name = entry.name();
    match purpose {
        Some(LeasePurpose::ApiServerIdentity { .. }) if name.chars().count() > LONGEST_HASH => {
            let start: String = name.chars().take(LONGEST_HASH - 1).collect();
            escape(&start) + "…"
        }
        _ => escape(name),
    }
}

/// The holder: for an API server its machine; otherwise without the UUID that client-go adds to the name of a machine or pod.
fn brief_holder(any: &AnyLease) -> Option<String> {
    if any.namespace == NAMESPACE {
        return any.lease.holder().map(brief);
    }
    if let LeasePurpose::ApiServerIdentity {
        host: Some(host), ..
    } = any.purpose()
    {
        return Some(escape(host));
    }
    let holder = any.lease.holder()?;
    Some(match holder.rsplit_once('_') {
        Some((start, uuid)) if uuid.len() == UUID && !start.is_empty() => named(start),
        _ => named(holder),
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

/// The columns that are left out, one after another, until the table fits the terminal.
const LESS_NEEDED: [Column; 2] = [Column::Age, Column::Purpose];

/// The table.
pub(crate) fn table(entries: &[LeaseEntry], layout: Layout, now: Now) -> String {
    // A wide table is whole, as kubectl's is.
    let fit = layout.fit.filter(|_| !layout.wide);
    let tables = (0..=LESS_NEEDED.len()).map(|left_out| {
        let mut columns = columns(layout);
        columns.retain(|column| !LESS_NEEDED[..left_out].contains(column));
        let is_brief = left_out > 0;
        let as_columns = columns.iter().map(|column| table::Column {
            header: column.header().to_owned(),
            least: column.least(),
        });
        let table = AlignedTable::new(as_columns.collect(), layout.headers, fit);
        let row = move |entry| {
            let cells = columns.iter().map(|it| it.cell(entry, is_brief, now));
            cells.collect()
        };
        (table, entries.iter().map(row))
    });
    first_to_fit(tables)
}

fn columns(layout: Layout) -> Vec<Column> {
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
    columns
}
