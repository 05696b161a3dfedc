//! The columns of a status, and how they are cut if a terminal is too narrow.

use maintenance_lease::protocol::Now;

use super::{Column, View};
use crate::output::grid::{Cell, Grid};
use crate::text::ALARM;

/// What to cut if a terminal is too narrow, in this order, and each minimum width. The names of nodes are
/// never cut. The start of a status or a holder is enough, but a reason needs more of its text.
const CUTS: [(Column, usize); 15] = [
    (Column::Fencing, 32),
    (Column::Holder, 32),
    (Column::LastHolder, 32),
    (Column::Status, 13),
    (Column::Reason, 32),
    (Column::LastReason, 32),
    (Column::Holder, 12),
    (Column::LastHolder, 12),
    (Column::Reason, 20),
    (Column::LastReason, 20),
    (Column::Status, 10),
    (Column::Holder, 8),
    (Column::Reason, 10),
    (Column::LastReason, 10),
    (Column::Reason, 6),
];

/// The minimum width in a wide table, which is wider than most terminals anyway.
const SHORTEST_IN_WIDE: usize = 24;

impl Column {
    /// The width that later rows are likely to need.
    fn reserve(self) -> usize {
        match self {
            Self::Holder | Self::Reason | Self::LastHolder | Self::LastReason => 20,
            Self::State => "Expired".len(),
            Self::Age => "3h25m".len(),
            Self::Left => "30m ago".len(),
            Self::Status => "NotReady".len(),
            Self::Acquired | Self::Renewed => "2006-01-02T15:04:05Z".len(),
            Self::Node | Self::Heartbeat | Self::Transitions | Self::Fencing | Self::Label(_) => 0,
        }
    }
}

/// A table of nodes that can be printed in parts.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    labels: Vec<String>,
    grid: Grid,
}

impl Table {
    /// With `wide`, more columns; with `nodes`, also what is known about the nodes themselves; a column for
    /// each of `labels`. It is cut to `fit` if the output is a terminal.
    pub(crate) fn new(
        wide: bool,
        nodes: bool,
        labels: &[String],
        headers: bool,
        fit: Option<usize>,
    ) -> Self {
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
                Column::LastReason,
            ]);
            if nodes {
                columns.push(Column::Fencing);
            }
        }
        columns.extend((0..labels.len()).map(Column::Label));
        let shortest = if wide { SHORTEST_IN_WIDE } else { 0 };
        let position = |wanted| columns.iter().position(|&column| column == wanted);
        let cuts = CUTS
            .iter()
            .filter(|(column, _)| !wide || *column != Column::Status)
            .filter_map(|&(column, least)| Some((position(column)?, least.max(shortest))))
            .collect();
        let names: Vec<String> = columns.iter().map(|column| column.header(labels)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Self {
            grid: Grid::new(&names, headers, fit, cuts),
            labels: labels.to_vec(),
            columns,
        }
    }

    /// Reserves room for later rows.
    pub(crate) fn for_rows_to_come(mut self) -> Self {
        let widths = self.columns.iter().map(|column| column.reserve());
        self.grid.reserve(widths);
        self
    }

    /// The text of some rows, after the headers if these are the first rows.
    pub(crate) fn rows(&mut self, views: &[View<'_>], now: Now) -> String {
        let cells = |view| {
            let cells = self.columns.iter().map(|column| {
                let cell = Cell::from(column.cell(view, &self.labels, now));
                match column.alarms(view) {
                    true => cell.styled(ALARM),
                    false => cell,
                }
            });
            cells.collect()
        };
        let rows = views.iter().map(cells).collect();
        self.grid.rows(rows)
    }
}
