//! The last locks of nodes, as a table and as data.

use crate::layout::table::{AlignedTable, Column, first_to_fit};
use maintenance_lease::protocol::identity::person;
use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Ending, NodeLease, PastLock};
use pod_safety::words::age;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, List, ListEntry, Time, kind};
use super::item_error::ItemError;
use crate::text::escape;
use crate::words::cells::{none, text};
use crate::words::history::{CURRENT, UNREADABLE, ending};
use crate::words::holder_name::{brief, of_node};

/// The locks of several nodes.
pub(crate) type RecordList = List<kind::LockRecordList, Record>;

/// A lock that somebody has or had.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LockRecord")]
pub(crate) struct Record {
    api_version: ApiVersion,
    kind: kind::LockRecord,
    node: String,
    /// Absent if the history cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// The API user, if it is known and is not the holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    /// The reason. A long one is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    /// When it was acquired.
    #[serde(skip)]
    since: Option<Instant>,
    /// How long somebody had it, if it has ended.
    #[serde(skip)]
    lasted: Option<Span>,
    /// How it ended; absent if the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<LockOutcome>,
    /// Who ended it, if not its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<String>,
    /// Why the locks of the node could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

/// How a lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
enum LockOutcome {
    /// It has not ended, or has expired and nobody acquired the node since.
    Current,
    Released,
    Expired,
    /// Its holder acquired the node again, for example to put it on hold.
    Replaced,
    /// Somebody else took it over.
    TakenOver,
    /// Another client wrote the history of this node.
    Unreadable,
}

impl Record {
    /// The locks that `lease` records, the newest first.
    pub(crate) fn all(lease: &NodeLease) -> Vec<Self> {
        let current = lease.holder().map(|holder| Self {
            holder: Some(holder.to_owned()),
            api_user: other(lease.api_user(), holder),
            ticket: lease.ticket().map(ToOwned::to_owned),
            reason: lease.reason().map(ToOwned::to_owned),
            acquired_at: lease.acquired().map(Time::from),
            since: lease.acquired().map(Instant::from),
            ..Self::new(lease.node(), Some(LockOutcome::Current))
        });
        let past = match lease.history() {
            Ok(history) => history
                .into_iter()
                .rev()
                .map(|past| Self::past(lease, past))
                .collect(),
            Err(_) => vec![Self::new(lease.node(), Some(LockOutcome::Unreadable))],
        };
        current.into_iter().chain(past).collect()
    }

    /// Why the locks of `node` could not be read.
    pub(crate) fn failed(node: &str, error: ItemError) -> Self {
        Self {
            error: Some(error),
            ..Self::new(node, None)
        }
    }

    fn new(node: &str, outcome: Option<LockOutcome>) -> Self {
        Self {
            node: node.to_owned(),
            outcome,
            ..Self::default()
        }
    }

    fn past(lease: &NodeLease, past: PastLock) -> Self {
        let outcome = match past.end {
            Ending::Released => LockOutcome::Released,
            Ending::Expired => LockOutcome::Expired,
            Ending::Replaced => LockOutcome::Replaced,
            Ending::TakenOver => LockOutcome::TakenOver,
        };
        Self {
            api_user: other(past.user.as_deref(), &past.holder),
            holder: Some(past.holder),
            ticket: past.ticket,
            reason: past.why,
            acquired_at: past.from.map(Time::from),
            since: past.from.map(Instant::from),
            ended_at: past.to.map(Time::from),
            lasted: past
                .from
                .zip(past.to)
                .map(|(from, to)| Instant::from(to) - Instant::from(from)),
            ended_by: past.by,
            ..Self::new(lease.node(), Some(outcome))
        }
    }

    fn end(&self) -> String {
        let end = match self.outcome {
            Some(LockOutcome::Current) => return CURRENT.to_owned(),
            Some(LockOutcome::Unreadable) | None => return UNREADABLE.to_owned(),
            Some(LockOutcome::Released) => Ending::Released,
            Some(LockOutcome::Expired) => Ending::Expired,
            Some(LockOutcome::Replaced) => Ending::Replaced,
            Some(LockOutcome::TakenOver) => Ending::TakenOver,
        };
        ending(end, self.ended_by.as_deref())
    }
}

/// The API user, unless it is the holder.
fn other(user: Option<&str>, holder: &str) -> Option<String> {
    user.filter(|user| *user != person(holder))
        .map(ToOwned::to_owned)
}

impl ListEntry for Record {
    fn name(&self) -> Option<String> {
        self.error.is_none().then(|| format!("node/{}", self.node))
    }
}

/// The table of `records`, with all columns if it `is_wide`. If it does not fit, it has ages instead of times, and short
/// holders.
pub(crate) fn table(
    records: &[Record],
    is_wide: bool,
    headers: bool,
    fit: Option<usize>,
    now: Now,
) -> String {
    let tables = [false, true].into_iter().map(|is_brief| {
        let row = move |record: &Record| row(record, is_wide, is_brief, now);
        let table = AlignedTable::new(columns(is_wide, is_brief), headers, fit);
        (table, records.iter().map(row))
    });
    first_to_fit(tables)
}

fn columns(is_wide: bool, is_brief: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::uncut("NODE"),
        Column::uncut("HOLDER"),
        Column::uncut(if is_brief { "AGE" } else { "FROM" }),
        Column::uncut("LASTED"),
        Column::uncut("ENDED"),
        Column {
            header: "REASON".to_owned(),
            least: Some(if is_brief { 8 } else { 16 }),
        },
    ];
    if is_wide {
        columns.extend(["TO", "TICKET", "USER"].map(Column::uncut));
    }
    columns
}

fn row(record: &Record, is_wide: bool, is_brief: bool, now: Now) -> Vec<String> {
    let time = |time: &Option<Time>| time.as_ref().map_or_else(none, ToString::to_string);
    let holder = if is_brief { brief } else { of_node };
    let mut cells = vec![
        escape(&record.node),
        record.holder.as_deref().map_or_else(none, holder),
        match is_brief {
            true => { record.since }.map_or_else(none, |since| age(now.latest - since)),
            false => time(&record.acquired_at),
        },
        record.lasted.map_or_else(none, age),
        record.end(),
        text(record.reason.as_deref()),
    ];
    if is_wide {
        cells.push(time(&record.ended_at));
        cells.push(text(record.ticket.as_deref()));
        cells.push(text(record.api_user.as_deref()));
    }
    cells
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn usual_names_fit_a_terminal() {
        let at = |minutes: i64| Instant::from_micros(1_772_366_400_000_000 + minutes * 60_000_000);
        let record = |from, to: Option<i64>, outcome, by: Option<&str>| Record {
            holder: Some("alice@bastion".to_owned()),
            reason: Some("disk errors since the last reboot".to_owned()),
            acquired_at: Time::of(at(from)),
            since: Some(at(from)),
            lasted: to.map(|to| at(to) - at(from)),
            ended_by: by.map(ToOwned::to_owned),
            ..Record::new("worker-1", Some(outcome))
        };
        let records = [
            record(-5, None, LockOutcome::Current, None),
            record(-300, Some(-270), LockOutcome::TakenOver, Some("carol@desk")),
        ];
        let shown = |fit| table(&records, false, true, fit, Now::at(at(0)));
        assert_snapshot!(shown(Some(80)), @"
        NODE       HOLDER          AGE   LASTED   ENDED                      REASON
        worker-1   alice@bastion   5m    -        current                    disk error…
        worker-1   alice@bastion   5h    30m      taken over by carol@desk   disk error…
        ");
        assert_snapshot!(shown(Some(120)), @"
        NODE       HOLDER          FROM                   LASTED   ENDED                      REASON
        worker-1   alice@bastion   2026-03-01T11:55:00Z   -        current                    disk errors since the last reboot
        worker-1   alice@bastion   2026-03-01T07:00:00Z   30m      taken over by carol@desk   disk errors since the last reboot
        ");
        assert_eq!(shown(Some(200)), shown(None));
    }
}
