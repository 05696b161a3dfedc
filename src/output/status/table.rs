//! The columns of a status, and what of them is cut where a terminal is too narrow.

use maintenance_lease::protocol::Now;

use super::{Column, View};
use crate::output::grid::{Cell, Grid};
use crate::text::ALARM;

/// What is cut where a terminal is too narrow, in this order, and to how much at the least, never the names
/// of nodes. Of a status the beginning tells most, of a reason all of it; an absurdly long holder of one node
/// costs no other node its reason.
const CUTS: [(Column, usize); 11] = [
    (Column::Fencing, 32),
    (Column::Holder, 32),
    (Column::LastHolder, 32),
    (Column::Status, 13),
    (Column::Reason, 10),
    (Column::LastReason, 10),
    (Column::Holder, 12),
    (Column::LastHolder, 12),
    (Column::Status, 10),
    (Column::Reason, 6),
    (Column::Holder, 8),
];

/// In a wide table nothing is cut to less: it is wider than most terminals anyway.
const SHORTEST_IN_WIDE: usize = 24;

impl Column {
    /// The room that rows to come are likely to need.
    fn reserve(self) -> usize {
        match self {
            Self::Holder | Self::Reason | Self::LastHolder | Self::LastReason => 20,
            Self::State => "Expired".len(),
            Self::Age => "<none>".len(),
            Self::Left => "30m ago".len(),
            Self::Status => "NotReady".len(),
            Self::Acquired | Self::Renewed => "2006-01-02T15:04:05Z".len(),
            Self::Node | Self::Heartbeat | Self::Transitions | Self::Fencing => 0,
        }
    }
}

/// A table of nodes, which may be printed piece by piece.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    grid: Grid,
}

impl Table {
    /// With `wide`, more columns; with `nodes`, also what is known of the nodes themselves; cut to
    /// `fit`, where somebody looks at it on a terminal.
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
                Column::LastReason,
            ]);
            if nodes {
                columns.push(Column::Fencing);
            }
        }
        let shortest = if wide { SHORTEST_IN_WIDE } else { 0 };
        let position = |wanted| columns.iter().position(|&column| column == wanted);
        let cuts = CUTS
            .iter()
            .filter(|(column, _)| !wide || *column != Column::Status)
            .filter_map(|&(column, least)| Some((position(column)?, least.max(shortest))))
            .collect();
        let names: Vec<&str> = columns.iter().map(|column| column.header()).collect();
        Self {
            grid: Grid::new(&names, headers, fit, cuts),
            columns,
        }
    }

    /// Leaves room for rows that come later, whatever the first are like.
    pub(crate) fn for_rows_to_come(mut self) -> Self {
        let widths = self.columns.iter().map(|column| column.reserve());
        self.grid.reserve(widths);
        self
    }

    /// The text of some rows, after the headers where they are the first.
    pub(crate) fn rows(&mut self, views: &[View<'_>], now: Now) -> String {
        let cells = |view| {
            let cells = self.columns.iter().map(|column| {
                let cell = Cell::from(column.cell(view, now));
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
