//! Rows under headers, as wide as a terminal allows: `kubectl get`'s layout.

use std::borrow::Cow;

use anstyle::Style;
use maintenance_lease::LONGEST_REASON;
use unicode_width::UnicodeWidthStr as _;

use crate::text::cut;

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
    /// How wide each column has been so far.
    widths: Vec<usize>,
    /// How wide each is to be for rows that come later, where there is room.
    reserved: Vec<usize>,
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
            reserved: vec![0; headers.len()],
            headers: shown.then(|| headers.iter().map(|&header| header.into()).collect()),
            fit,
            cuts,
            begun: false,
        }
    }

    /// Leaves room for rows that come later, whatever the first are like, as far as there is any.
    pub(crate) fn reserve(&mut self, widths: impl IntoIterator<Item = usize>) {
        self.reserved = widths.into_iter().collect();
    }

    /// The text of some rows, after the headers where they are the first.
    pub(crate) fn rows(&mut self, cells: Vec<Vec<Cell>>) -> String {
        let mut rows: Vec<Vec<Cell>> = self.headers.take().into_iter().collect();
        rows.extend(cells);
        self.widen(&rows);
        self.align(&rows)
    }

    /// Makes each column as wide as its widest cell so far, less what the terminal has no room for. Where
    /// it can't hold the rows even so, nothing is cut to make room: a wrapped row tells more whole.
    fn widen(&mut self, rows: &[Vec<Cell>]) {
        let mut whole = self.widths.clone();
        for row in rows {
            for (width, cell) in whole.iter_mut().zip(row) {
                *width = cell.text.width().min(WIDEST).max(*width);
            }
        }
        self.widths = match self.fit {
            None => self.with_reserves(&whole),
            Some(fit) => self
                .fitted(&whole, fit)
                .unwrap_or_else(|| self.wrapped(whole, fit)),
        };
        self.reserved.fill(0);
        self.begun = true;
    }

    fn with_reserves(&self, whole: &[usize]) -> Vec<usize> {
        let reserved = self.reserved.iter();
        whole.iter().zip(reserved).map(|(a, b)| *a.max(b)).collect()
    }

    /// Columns that are `whole` so wide, in a terminal of `fit` columns: room for rows to come is given up
    /// before anything is cut. `None`: they can't be made to fit.
    fn fitted(&self, whole: &[usize], fit: usize) -> Option<Vec<usize>> {
        let mut widths = self.with_reserves(whole);
        let all = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
        let mut excess = all.saturating_sub(fit);
        let mut narrow = |column: usize, least: usize| {
            let less = excess.min(widths[column].saturating_sub(least));
            widths[column] -= less;
            excess -= less;
        };
        for &(column, least) in &self.cuts {
            narrow(column, least.max(whole[column]));
        }
        for (column, &width) in whole.iter().enumerate() {
            narrow(column, width);
        }
        for &(column, least) in &self.cuts {
            // Nothing stands behind the last, so that it may be narrower than in earlier rows.
            let is_free = !self.begun || column == whole.len() - 1;
            let least = if is_free { least } else { self.widths[column] };
            narrow(column, least);
        }
        (excess == 0).then_some(widths)
    }

    /// Columns of rows that a terminal wraps anyway: of anybody's texts no more than a line of it, so that
    /// one row does not fill up all others.
    fn wrapped(&self, mut whole: Vec<usize>, fit: usize) -> Vec<usize> {
        for &(column, least) in &self.cuts {
            whole[column] = whole[column].min(fit.max(least));
        }
        whole
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
        assert_eq!(shown(16), "one   12…   abc…");
    }

    #[test]
    fn what_can_not_fit_is_whole() {
        let row = |first: &str| vec![vec![first.into(), "12345678".into()]];
        let mut grid = Grid::new(&["", ""], false, Some(20), vec![(1, 4)]);
        assert_eq!(grid.rows(row("a-dozen-long")), "a-dozen-long   1234…");
        assert_eq!(
            grid.rows(row("a-dozen-longer")),
            "a-dozen-longer   12345678"
        );
    }

    #[test]
    fn room_for_rows_to_come_is_given_up_before_anything_is_cut() {
        let shown = |fit| {
            let mut grid = Grid::new(&["A", "B", "C"], true, Some(fit), vec![(1, 3)]);
            grid.reserve([0, 9, 5]);
            let text = grid.rows(vec![vec!["1".into(), "2222".into(), "3".into()]]);
            text.lines().last().map(ToOwned::to_owned)
        };
        for (fit, expected) in [
            (21, "1   2222        3"),
            (18, "1   2222     3"),
            (16, "1   2222   3"),
            (12, "1   2222   3"),
            (11, "1   22…   3"),
            (10, "1   2222   3"),
        ] {
            assert_eq!(shown(fit).as_deref(), Some(expected), "{fit}");
        }
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
