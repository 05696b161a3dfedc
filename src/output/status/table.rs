//! The columns of a status.

use maintenance_lease::protocol::Now;

use super::{Column, View};
use crate::output::grid::{self, Grid};
use crate::text::ALARM;

impl Column {
    /// The least useful width, for narrow terminals. The names of nodes are never cut.
    fn least(self) -> Option<u16> {
        match self {
            Self::Holder | Self::Reason | Self::Status => Some(8),
            _ => None,
        }
    }

    /// A likely value of later rows, to make room for it.
    fn typical(self) -> &'static str {
        match self {
            Self::State => "Expired",
            Self::Holder | Self::LastHolder => "alice@bastion.example",
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

/// A table of nodes that can be printed in parts.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    labels: Vec<String>,
    grid: Grid,
}

impl Table {
    /// With `wide`, more columns; with `nodes`, also what is known about the nodes themselves; a column for
    /// each of `labels`. `fit` is the width of the terminal, if the output is one.
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
                columns.extend([Column::Fencing, Column::OtherTools]);
            }
        }
        columns.extend((0..labels.len()).map(Column::Label));
        let as_columns = columns.iter().map(|column| grid::Column {
            header: column.header(labels),
            least: column.least(),
        });
        // A wide table is whole, as kubectl's is.
        let fit = fit.filter(|_| !wide);
        Self {
            grid: Grid::new(as_columns.collect(), headers, fit),
            labels: labels.to_vec(),
            columns,
        }
    }

    /// Makes room for later rows.
    pub(crate) fn for_rows_to_come(self) -> Self {
        let typical = self
            .columns
            .iter()
            .map(|column| column.typical().to_owned());
        let grid = self.grid.with_typical(typical.collect());
        Self { grid, ..self }
    }

    /// The text of some rows, after the headers if these are the first rows. Rows that must not be
    /// overlooked are in colour.
    pub(crate) fn rows(&mut self, views: &[View<'_>], now: Now) -> String {
        let row = |view: &View<'_>| {
            let cells = self.columns.iter();
            cells
                .map(|column| column.cell(view, &self.labels, now))
                .collect()
        };
        let mut lines = self.grid.rows(views.iter().map(row));
        for (line, view) in lines.iter_mut().rev().zip(views.iter().rev()) {
            if self.columns.iter().any(|column| column.alarms(view)) {
                *line = format!("{ALARM}{line}{ALARM:#}");
            }
        }
        lines.join("\n")
    }
}
