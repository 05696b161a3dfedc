//! Rows under headers, as wide as a terminal allows: `kubectl get`'s layout.

use std::borrow::Cow;

use anstyle::Style;
use maintenance_lease::LONGEST_REASON;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Spaces between columns.
const GAP: usize = 3;

/// As wide as a column gets for the longest of its cells: that much a reason of ours may have. All rows
/// are filled up to it, and other tools write without measure: one holder of a megabyte would make a
/// gigabyte of a thousand rows.
const WIDEST: usize = LONGEST_REASON;

/// A text in its place, which is safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// The same in a style, for terminals that have any.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            style: Style::new(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A table that may be printed piece by piece: rows that come later stand under the same headers.
#[derive(Debug)]
pub(crate) struct Grid {
    /// `None`: they were printed, or are not wanted.
    headers: Option<Vec<Cell>>,
    /// The width to fit in, where somebody looks at it on a terminal.
    fit: Option<usize>,
    /// What is cut where it does not fit, in this order: a column, and the least that it is cut to,
    /// so that it still tells something.
    cuts: Vec<(usize, usize)>,
    /// How wide each column has been so far, or is to be at least.
    widths: Vec<usize>,
    /// Some rows were printed: their columns can't get narrower.
    begun: bool,
}

impl Grid {
    /// A table with these `headers`, which are printed only where they are `shown`.
    pub(crate) fn new(
        headers: &[&str],
        shown: bool,
        fit: Option<usize>,
        cuts: Vec<(usize, usize)>,
    ) -> Self {
        Self {
            widths: vec![0; headers.len()],
            headers: shown.then(|| headers.iter().map(|&header| header.into()).collect()),
            fit,
            cuts,
            begun: false,
        }
    }

    /// Leaves room for rows that come later, whatever the first are like. The last column needs
    /// none: nothing stands behind it.
    pub(crate) fn reserve(&mut self, widths: impl IntoIterator<Item = usize>) {
        let last = self.widths.len() - 1;
        for (width, reserved) in self.widths[..last].iter_mut().zip(widths) {
            *width = reserved;
        }
    }

    /// The text of some rows, after the headers where they are the first.
    pub(crate) fn rows(&mut self, cells: Vec<Vec<Cell>>) -> String {
        let mut rows: Vec<Vec<Cell>> = self.headers.take().into_iter().collect();
        rows.extend(cells);
        self.widen(&rows);
        self.align(&rows)
    }

    /// Makes each column as wide as its widest cell so far, less what the terminal has no room for.
    fn widen(&mut self, rows: &[Vec<Cell>]) {
        let mut widths = self.widths.clone();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.text.width().min(WIDEST).max(*width);
            }
        }
        if let Some(fit) = self.fit {
            let whole = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
            let mut excess = whole.saturating_sub(fit);
            for &(column, least) in &self.cuts {
                let least = if self.begun {
                    self.widths[column]
                } else {
                    least
                };
                let less = excess.min(widths[column].saturating_sub(least));
                widths[column] -= less;
                excess -= less;
            }
        }
        self.widths = widths;
        self.begun = true;
    }

    /// The rows as lines, their cells cut to their columns on a terminal. Whatever else reads them gets
    /// whole cells: one that is wider than its column moves the rest of its row.
    fn align(&self, rows: &[Vec<Cell>]) -> String {
        let lines: Vec<String> = rows.iter().map(|row| self.line(row)).collect();
        lines.join("\n")
    }

    fn line(&self, row: &[Cell]) -> String {
        let mut line = String::new();
        let mut gap = 0;
        for (Cell { text, style }, &width) in row.iter().zip(&self.widths) {
            let text = match self.fit {
                Some(_) => Cow::Owned(cut(text, width)),
                None => Cow::Borrowed(&**text),
            };
            let text = text.trim_end_matches(' ');
            if !text.is_empty() {
                line.extend(std::iter::repeat_n(' ', std::mem::take(&mut gap)));
                line.push_str(&format!("{style}{text}{style:#}"));
            }
            gap += width.saturating_sub(text.width()) + GAP;
        }
        line
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

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    #[test]
    fn a_style_takes_no_room() {
        let red = AnsiColor::Red.on_default();
        let mut grid = Grid::new(&["A", "B"], true, None, Vec::new());
        let text = grid.rows(vec![
            vec![Cell::from("bad").styled(red), "x".into()],
            vec!["good".into(), "y".into()],
        ]);
        let (start, end) = (red.render(), red.render_reset());
        assert_eq!(text, format!("A      B\n{start}bad{end}    x\ngood   y"));
    }

    #[test]
    fn cuts_come_in_their_order_and_stop_at_the_least() {
        let cells = || vec![vec!["one".into(), "12345678".into(), "abcdefgh".into()]];
        let shown = |fit| {
            let cuts = vec![(2, 4), (1, 3)];
            Grid::new(&["", "", ""], false, Some(fit), cuts).rows(cells())
        };
        assert_eq!(shown(25), "one   12345678   abcdefgh");
        assert_eq!(shown(22), "one   12345678   abcd…");
        assert_eq!(shown(19), "one   12345…   abc…");
        assert_eq!(shown(1), "one   12…   abc…");
    }

    #[test]
    fn no_column_is_wider_than_what_is_ours() {
        let huge = "x".repeat(2 * WIDEST);
        let rows = |fit| {
            let cells = [[&huge, "y"], ["short", "y"]].map(|row| row.map(Cell::from).to_vec());
            let text = Grid::new(&["", ""], false, fit, Vec::new()).rows(cells.to_vec());
            text.lines().map(str::width).collect::<Vec<_>>()
        };
        let filled_up = WIDEST + GAP + 1;
        assert_eq!(rows(None), [2 * WIDEST + GAP + 1, filled_up]);
        assert_eq!(
            rows(Some(80)),
            [filled_up, filled_up],
            "a terminal's is cut"
        );
    }

    #[test]
    fn rows_to_come_have_room() {
        let mut grid = Grid::new(&["A", "B"], true, None, Vec::new());
        grid.reserve([5, 9]);
        assert_eq!(
            grid.rows(vec![vec!["1".into(), "2".into()]]),
            "A       B\n1       2"
        );
        assert_eq!(
            grid.rows(vec![vec!["12345".into(), "2".into()]]),
            "12345   2"
        );
    }
}
