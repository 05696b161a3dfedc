//! Rows under headers, as wide as a terminal allows.

use maintenance_lease::protocol::Now;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{Column, View};

/// Spaces between columns.
const GAP: usize = 3;

/// What is cut where a terminal is too narrow, in this order, and to how much at the least, so that
/// it still tells something: anybody's texts. Reasons come first, but an absurdly long holder of
/// one node costs no other node its reason.
const CUTS: [(Column, usize); 6] = [
    (Column::Holder, 32),
    (Column::LastHolder, 32),
    (Column::Reason, 10),
    (Column::LastReason, 10),
    (Column::Holder, 12),
    (Column::LastHolder, 12),
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
            Self::Status => "Ready,SchedulingDisabled".len(),
            Self::Acquired | Self::Renewed => "2006-01-02T15:04:05Z".len(),
            Self::Node | Self::Heartbeat | Self::Transitions => 0,
        }
    }
}

/// A table that may be printed piece by piece: rows that come later stand under the same headers.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    wide: bool,
    headers: bool,
    /// The width to fit in, where somebody looks at it on a terminal.
    fit: Option<usize>,
    /// How wide each column has been so far, or is to be at least.
    widths: Vec<usize>,
    /// Some rows were printed: their columns can't get narrower.
    begun: bool,
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
                Column::LastReason,
            ]);
        }
        Self {
            widths: vec![0; columns.len()],
            columns,
            wide,
            headers,
            fit,
            begun: false,
        }
    }

    /// Leaves room for rows that come later, whatever the first are like. The last column needs
    /// none: nothing stands behind it.
    pub(crate) fn for_rows_to_come(mut self) -> Self {
        let last = self.columns.len() - 1;
        for (width, column) in self.widths.iter_mut().zip(&self.columns[..last]) {
            *width = column.reserve();
        }
        self
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
        self.widen(&rows);
        self.align(&rows)
    }

    /// Makes each column as wide as its widest cell so far, less what the terminal has no room for.
    fn widen(&mut self, rows: &[Vec<String>]) {
        let mut widths = self.widths.clone();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        if let Some(fit) = self.fit {
            let whole = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
            let mut excess = whole.saturating_sub(fit);
            for (column, least) in CUTS {
                let Some(index) = self.columns.iter().position(|&other| other == column) else {
                    continue;
                };
                let least = match () {
                    () if self.begun => self.widths[index],
                    () if self.wide => least.max(SHORTEST_IN_WIDE),
                    () => least,
                };
                let less = excess.min(widths[index].saturating_sub(least));
                widths[index] -= less;
                excess -= less;
            }
        }
        self.widths = widths;
        self.begun = true;
    }

    /// The rows as lines, their cells cut to their columns.
    fn align(&self, rows: &[Vec<String>]) -> String {
        let mut text = String::new();
        for row in rows {
            for (cell, &width) in row.iter().zip(&self.widths) {
                let cell = cut(cell, width);
                text.push_str(&cell);
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
pub(crate) fn cut(text: &str, width: usize) -> String {
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
