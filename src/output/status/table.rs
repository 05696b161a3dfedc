//! The columns of a status.

use crate::layout::table::{self, AlignedTable};
use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{LONGEST_REASON, NodeLease, NodeLookup, NodeRow};
use pod_safety::node_health::Health;
use pod_safety::words::age;

use super::view::{Heartbeat, View};
use crate::text::escape;
use crate::words::cells::{last_reason, left, none, reason_and_ticket, text, unknown, unreadable};
use crate::words::health;
use crate::words::holder_name::{brief, of_node};
use crate::words::keys;
use crate::words::other_tools::sentences;
use crate::words::state::ShownState;
use crate::words::time::rfc3339;

// No reason is cut.
const _: () = assert!(table::LONGEST >= LONGEST_REASON);

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
            Self::LastReason => "NOTE",
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

    fn cell(self, view: &View<'_>, labels: &[String], is_brief: bool, now: Now) -> String {
        let held = view.lease.filter(|lease| lease.holder().is_some());
        match self {
            Self::Node => escape(view.node),
            Self::State => ShownState::of(view.lease, now).word().to_owned(),
            Self::Holder => match held.and_then(NodeLease::holder) {
                None => none(),
                Some(holder) if is_brief => brief(holder),
                Some(holder) => of_node(holder),
            },
            Self::Reason => held.map_or_else(none, reason_and_ticket),
            Self::Age => match held {
                None => none(),
                Some(lease) => lease.acquired().map_or_else(unknown, |acquired| {
                    age(now.latest - Instant::from(acquired))
                }),
            },
            Self::Left => view.lease.map_or_else(none, |lease| left(lease, now)),
            Self::Status => match view.row {
                NodeLookup::Row(row) => health::status(row, view.health, is_brief, now),
                NodeLookup::Missing => health::words(&Health::Gone, now),
                NodeLookup::Forbidden | NodeLookup::Unread => unknown(),
            },
            Self::Heartbeat => match view.heartbeat {
                Heartbeat::At(Instant::UNREADABLE) => unreadable(),
                Heartbeat::At(instant) => age(now.latest - instant),
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
            Self::Fencing => match (view.annotations, view.health) {
                (Some(annotations), _) => annotations.words(now).unwrap_or_else(none),
                (None, Some(_)) => none(),
                (None, None) => unknown(),
            },
            Self::OtherTools => match (view.findings, view.health) {
                (Some(findings), _) => {
                    let all = sentences(findings, now).into_iter();
                    let all = all.chain(keys::mismatch(view.keys, view.lease, now));
                    let all: Vec<String> = all.collect();
                    if all.is_empty() {
                        none()
                    } else {
                        all.join("; ")
                    }
                }
                (None, _) if view.row.row().is_some_and(NodeRow::is_cordoned) => {
                    "cordoned".to_owned()
                }
                (None, Some(_)) => none(),
                (None, None) => unknown(),
            },
            Self::Label(index) => match view.row {
                NodeLookup::Row(row) => text(row.labels.get(&labels[index]).map(String::as_str)),
                NodeLookup::Missing => none(),
                NodeLookup::Forbidden | NodeLookup::Unread => unknown(),
            },
        }
    }

    /// The least useful width, for narrow terminals. Names and the health of nodes are never cut.
    fn least(self) -> Option<u16> {
        (self == Self::Reason).then_some(20)
    }

    /// A likely value of later rows, to make room for it.
    fn typical(self) -> &'static str {
        match self {
            Self::State => "Expired",
            Self::Holder | Self::LastHolder => "alice@example",
            Self::Reason | Self::LastReason => "new kernel, then the drivers",
            Self::Age => "3h25m",
            Self::Left => "30m ago",
            Self::Status => "NotReady",
            Self::Acquired | Self::Renewed => "2006-01-02T15:04:05Z",
            Self::Node
            | Self::Heartbeat
            | Self::Transitions
            | Self::Fencing
            | Self::OtherTools
            | Self::Label(_) => "",
        }
    }
}

/// Rows of the table, as they are printed.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// It must not be overlooked.
    pub(crate) is_alarming: bool,
}

/// A table of nodes that can be printed in parts.
#[derive(Debug)]
pub(crate) struct Table {
    cells: Cells,
    /// From the widest to the narrowest. Once rows are printed, only theirs is left.
    layouts: Vec<Columns>,
}

/// Columns that are aligned with each other.
#[derive(Debug)]
struct Columns {
    columns: Vec<Column>,
    aligned: AlignedTable,
}

/// What the cells are made of.
#[derive(Debug)]
struct Cells {
    labels: Vec<String>,
    /// Whether names are left out that `-o wide` and `describe` have.
    is_brief: bool,
}

impl Cells {
    fn row(&self, columns: &[Column], view: &View<'_>, now: Now) -> Vec<String> {
        let cells = columns.iter();
        cells
            .map(|column| column.cell(view, &self.labels, self.is_brief, now))
            .collect()
    }

    fn rows(&self, columns: &[Column], views: &[View<'_>], now: Now) -> Vec<Vec<String>> {
        let rows = views.iter().map(|view| self.row(columns, view, now));
        rows.collect()
    }
}

impl Columns {
    fn new(columns: Vec<Column>, labels: &[String], headers: bool, fit: Option<usize>) -> Self {
        let as_columns = columns.iter().map(|column| table::Column {
            header: column.header(labels),
            least: column.least(),
        });
        Self {
            aligned: AlignedTable::new(as_columns.collect(), headers, fit),
            columns,
        }
    }

    fn for_rows_to_come(self) -> Self {
        let columns = self.columns.iter();
        let typical = columns.map(|column| column.typical().to_owned());
        Self {
            aligned: self.aligned.with_typical(typical.collect()),
            ..self
        }
    }

    fn fit(&self, cells: &Cells, views: &[View<'_>], now: Now) -> bool {
        self.aligned.fits(&cells.rows(&self.columns, views, now))
    }

    /// The headers, if these are the first rows, and a line for each row.
    fn lines(&mut self, cells: &Cells, views: &[View<'_>], now: Now) -> Vec<Line> {
        let rows = cells.rows(&self.columns, views, now);
        let lines = self.aligned.rows(rows);
        let headers = lines.len() - views.len();
        let alarms = |view: &View<'_>| self.columns.iter().any(|column| column.alarms(view));
        let lines = lines.into_iter().enumerate();
        let lines = lines.map(|(index, text)| Line {
            text,
            is_alarming: index >= headers && alarms(&views[index - headers]),
        });
        lines.collect()
    }
}

impl Table {
    /// With `wide`, more columns; a column for each of `labels`. `fit` is the width of the terminal, if the output is one.
    ///
    /// If a terminal is too narrow for the rows, the ages are left out.
    pub(crate) fn new(wide: bool, labels: &[String], headers: bool, fit: Option<usize>) -> Self {
        let mut columns = vec![
            Column::Node,
            Column::State,
            Column::Holder,
            Column::Reason,
            Column::Age,
            Column::Left,
            Column::Status,
        ];
        if wide {
            columns.extend([
                Column::Heartbeat,
                Column::Acquired,
                Column::Renewed,
                Column::Transitions,
                Column::LastHolder,
                Column::LastReason,
                Column::Fencing,
                Column::OtherTools,
            ]);
        }
        columns.extend((0..labels.len()).map(Column::Label));
        // A wide table is whole, as kubectl's is.
        let fit = fit.filter(|_| !wide);
        let mut layouts = vec![Columns::new(columns.clone(), labels, headers, fit)];
        if fit.is_some() {
            columns.retain(|column| *column != Column::Age);
            layouts.push(Columns::new(columns, labels, headers, fit));
        }
        Self {
            cells: Cells {
                labels: labels.to_vec(),
                is_brief: fit.is_some(),
            },
            layouts,
        }
    }

    /// Makes room for later rows.
    pub(crate) fn for_rows_to_come(self) -> Self {
        let layouts = self.layouts.into_iter().map(Columns::for_rows_to_come);
        Self {
            layouts: layouts.collect(),
            ..self
        }
    }

    /// Some rows, after the headers if these are the first rows.
    pub(crate) fn rows(&mut self, views: &[View<'_>], now: Now) -> Rows {
        let Self { cells, layouts } = self;
        let fits = |layout: &Columns| layout.fit(cells, views, now);
        let last = layouts.len() - 1;
        // The last layout is used if no other fits.
        let chosen = layouts[..last].iter().position(fits).unwrap_or(last);
        layouts.swap(0, chosen);
        layouts.truncate(1);
        Rows {
            lines: layouts[0].lines(cells, views, now),
        }
    }
}

fn date(lease: Option<&NodeLease>, time: impl Fn(&NodeLease) -> Option<DateTime<Utc>>) -> String {
    match lease {
        None => none(),
        Some(lease) => time(lease).map_or_else(unknown, rfc3339),
    }
}
