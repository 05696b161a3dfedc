//! Tables as `kubectl get` prints them, within the width of a terminal. comfy-table lays them out.

use std::borrow::Cow;
use std::iter::repeat;

use comfy_table::{
    ColumnConstraint, ContentArrangement, ContentLineStyle, Row, Table, TableStyle, Width,
};
use maintenance_lease::LONGEST_REASON;
use unicode_width::UnicodeWidthStr as _;

use crate::text::hanging;

/// The space between columns.
pub(crate) const GAP: &str = "   ";

/// The separator between cells, to find them in a line. Text that is safe to print never contains it.
const BORDER: char = '\t';

/// How many rows are laid out at a time: comfy-table needs many times the memory of its text.
const BLOCK: usize = 256;

/// The longest cell, in characters, because other tools may write a holder of a megabyte.
const LONGEST: usize = LONGEST_REASON;

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) header: String,
    /// The least width to which its cells may be cut to fit a terminal. `None`: they are never cut. One column
    /// of a table may be cut.
    pub(crate) least: Option<u16>,
}

impl Column {
    /// A column whose cells are never cut.
    pub(crate) fn uncut(header: impl Into<String>) -> Self {
        Self {
            header: header.into(),
            least: None,
        }
    }
}

/// A table that can be printed in parts: later rows are aligned with the first.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    /// Whether the headers must still be printed.
    headers: bool,
    /// The width of the terminal, if the output is one.
    fit: Option<usize>,
    /// A sample of later rows, to make room for them. It is not printed.
    typical: Option<Vec<String>>,
    /// The widths of the columns in the first part.
    widths: Option<Vec<u16>>,
}

impl Grid {
    pub(crate) fn new(columns: Vec<Column>, headers: bool, fit: Option<usize>) -> Self {
        Self {
            columns,
            headers,
            fit,
            typical: None,
            widths: None,
        }
    }

    /// Makes room for later rows that look like this one, if the terminal has it.
    pub(crate) fn with_typical(self, row: Vec<String>) -> Self {
        Self {
            typical: Some(row),
            ..self
        }
    }

    /// Leaves out the column at `index`, here and in these first rows, if they are too wide for the terminal. Returns whether
    /// it did.
    pub(crate) fn leave_out(&mut self, index: usize, rows: &mut [Vec<String>]) -> bool {
        let headers = self.headers().into_iter();
        let widest = widest(&headers.chain([widest(rows)]).collect::<Vec<_>>());
        let is_too_wide = self.widths.is_none() && self.fitting(&widest).is_none();
        if is_too_wide {
            self.columns.remove(index);
            for row in self.typical.iter_mut().chain(rows) {
                row.remove(index);
            }
        }
        is_too_wide
    }

    fn headers(&self) -> Option<Vec<String>> {
        let headers = self.columns.iter().map(|column| column.header.clone());
        self.headers.then(|| headers.collect())
    }

    /// The lines of some rows, after the headers if these are the first rows.
    pub(crate) fn rows(&mut self, cells: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
        let headers = self.headers();
        self.headers = false;
        let rows: Vec<Vec<String>> = headers.into_iter().chain(cells).collect();
        let widest = widest(&rows);
        if self.widths.is_none() {
            self.widths = Some(self.first_widths(&widest));
        }
        let lines = rows.chunks(BLOCK).flat_map(|block| {
            // The widest row gives all blocks the same widths.
            let mut lines = self.lines(block.iter().chain([&widest]), None);
            lines.pop();
            lines
        });
        let lines = lines.map(|line| with_gaps(&line));
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    /// The widths with which rows up to the `widest` share the terminal. A typical row gets room only if all of it fits.
    fn first_widths(&mut self, widest: &[String]) -> Vec<u16> {
        let typical = self.typical.take();
        let roomy = typical.map(|typical| self::widest(&[typical, widest.to_vec()]));
        let fitting = roomy
            .and_then(|row| self.fitting(&row))
            .or_else(|| self.fitting(widest));
        // The terminal wraps the rows anyway.
        let line = fitting.or_else(|| self.lines([&widest.to_vec()], None).pop());
        let cells = line.iter().flat_map(|line| line.split(BORDER));
        cells.map(|cell| as_width(cell.width())).collect()
    }

    /// The line of a row if it fits into the terminal.
    fn fitting(&self, row: &[String]) -> Option<String> {
        let line = self.lines([&row.to_vec()], self.fit).pop();
        let fits = |width| self.fit.is_none_or(|fit| width <= fit);
        line.filter(|line| fits(with_gaps(line).width()))
    }

    /// The lines of `rows`, within `fit`. Later rows keep the widths of the first ones.
    fn lines<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r Vec<String>>,
        fit: Option<usize>,
    ) -> Vec<String> {
        let mut table = table(rows);
        let gaps = (GAP.len() - 1) * self.columns.len().saturating_sub(1);
        let width = fit.map_or(u16::MAX, |fit| as_width(fit.saturating_sub(gaps)));
        table.set_width(width);
        let first = self.widths.iter().flatten().map(Some).chain(repeat(None));
        let widest = table.column_max_content_widths();
        let columns = self.columns.iter().zip(first).zip(widest);
        let constraint =
            |((column, first), widest): ((&Column, Option<&u16>), u16)| match (first, column.least)
            {
                (Some(&first), Some(_)) if self.fit.is_some() => {
                    ColumnConstraint::Absolute(Width::Fixed(first))
                }
                (Some(&first), _) => at_least(first),
                (None, Some(least)) => at_least(least.min(widest)),
                (None, None) => ColumnConstraint::ContentWidth,
            };
        table.set_constraints(columns.map(constraint));
        table.lines().collect()
    }
}

/// The first of some tables that fits, else the last.
pub(crate) fn first_to_fit(tables: impl IntoIterator<Item = String>, fit: Option<usize>) -> String {
    let mut last = String::new();
    for table in tables {
        last = table;
        if fit.is_none_or(|fit| last.lines().all(|line| line.width() <= fit)) {
            break;
        }
    }
    last
}

/// The widest cell of each column.
fn widest(rows: &[Vec<String>]) -> Vec<String> {
    let mut widest: Vec<(usize, Cow<'_, str>)> = Vec::new();
    for row in rows {
        widest.resize(widest.len().max(row.len()), (0, "".into()));
        for (widest, cell) in widest.iter_mut().zip(row) {
            let cell = truncated(cell);
            let width = cell.width();
            if width > widest.0 {
                *widest = (width, cell);
            }
        }
    }
    widest
        .into_iter()
        .map(|(_, cell)| cell.into_owned())
        .collect()
}

/// A line of a table, with the gaps between its cells.
fn with_gaps(line: &str) -> String {
    line.replace(BORDER, GAP)
}

/// The least room for words beside cells. With less, the words have lines of their own.
const LEAST_WORDS: usize = 24;

/// Rows of aligned cells, each followed by words, which are wrapped within `fit` and stay aligned. `least` has
/// the least widths of the cells. comfy-table would split commands, which are pasted, so it does not wrap the words.
pub(crate) fn with_words(
    rows: impl IntoIterator<Item = (Vec<String>, String)>,
    least: &[u16],
    gap: &str,
    fit: Option<usize>,
) -> String {
    let (cells, words): (Vec<_>, Vec<String>) = rows.into_iter().unzip();
    let mut table = table(&cells);
    table.set_constraints(least.iter().copied().map(at_least));
    let heads = table.lines().map(|line| line.replace(BORDER, gap) + gap);
    let lines = heads.zip(&words).map(|(head, words)| {
        match fit.is_some_and(|fit| fit < head.width() + LEAST_WORDS) {
            true => format!("{}\n{}", head.trim_end(), hanging("    ", words, fit)),
            false => hanging(&head, words, fit),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A table of these rows. Each stays on one line, and may be cut within a word.
fn table<'r>(rows: impl IntoIterator<Item = &'r Vec<String>>) -> Table {
    let mut table = Table::new();
    let borders = ContentLineStyle::none().junction(BORDER);
    table
        .load_style(TableStyle::new().content_lines(borders))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::MAX)
        .set_delimiter(BORDER);
    for row in rows {
        let mut row = Row::from(row.iter().map(|cell| truncated(cell)));
        row.max_height(1);
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table
}

fn at_least(width: u16) -> ColumnConstraint {
    ColumnConstraint::LowerBoundary(Width::Fixed(width))
}

/// A cell, or the start of one that is too long.
fn truncated(cell: &str) -> Cow<'_, str> {
    match cell.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &cell[..end]).into(),
        None => cell.into(),
    }
}

fn as_width(width: usize) -> u16 {
    width.try_into().unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table whose second column may be cut to 3 characters.
    fn grid(headers: bool, fit: Option<usize>) -> Grid {
        let cuts = [("A", None), ("B", Some(3)), ("C", None)];
        let columns = cuts.map(|(header, least)| Column {
            least,
            ..Column::uncut(header)
        });
        Grid::new(columns.to_vec(), headers, fit)
    }

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(ToOwned::to_owned).to_vec()
    }

    #[test]
    fn only_one_column_is_cut() {
        let shown = |fit| {
            let row = row(["one", "12345678", "abcdefgh"]);
            grid(false, fit).rows([row]).join("\n")
        };
        assert_eq!(shown(None), "one   12345678   abcdefgh");
        assert_eq!(shown(Some(25)), "one   12345678   abcdefgh");
        assert_eq!(shown(Some(22)), "one   1234…   abcdefgh");
        assert_eq!(shown(Some(20)), "one   12…   abcdefgh");
        assert_eq!(
            shown(Some(19)),
            "one   12345678   abcdefgh",
            "the terminal wraps it anyway"
        );
    }

    #[test]
    fn the_first_table_that_fits_is_shown() {
        let first = |fit| first_to_fit(["1234", "12\n123", "新"].map(ToOwned::to_owned), fit);
        assert_eq!(first(None), "1234");
        assert_eq!(first(Some(4)), "1234");
        assert_eq!(first(Some(3)), "12\n123");
        assert_eq!(first(Some(2)), "新");
        assert_eq!(first(Some(1)), "新", "the terminal wraps it anyway");
    }

    #[test]
    fn later_rows_keep_the_widths() {
        let mut grid = grid(true, Some(30)).with_typical(row(["12345", "1234567", "123"]));
        assert_eq!(
            grid.rows([row(["1", "2", "3"])]),
            ["A       B         C", "1       2         3"]
        );
        let later = row(["1234", "a long word", "more than that"]);
        assert_eq!(grid.rows([later]), ["1234    a long…   more than that"]);
        let named = row(["a-long-name", "a long word", "more"]);
        assert_eq!(grid.rows([named]), ["a-long-name   a long…   more"]);
    }

    #[test]
    fn a_typical_row_takes_no_room_that_the_first_rows_need() {
        let typical = row(["12345", "1234567", "123"]);
        let mut narrow = grid(false, Some(17)).with_typical(typical.clone());
        assert_eq!(
            narrow.rows([row(["12", "12345", "123456"])]),
            ["12   12…   123456"]
        );
        let mut piped = grid(false, None).with_typical(typical);
        assert_eq!(piped.rows([row(["1", "2", "3"])]), ["1       2         3"]);
    }

    #[test]
    fn characters_count_by_their_width_on_a_terminal() {
        let rows = |fit| {
            let cells = ["e\u{301}e\u{301}e\u{301}", "新しい", "abcdefg"];
            let mut columns = vec![Column::uncut(""), Column::uncut("")];
            columns[0].least = Some(1);
            let rows = cells.map(|text| vec![text.to_owned(), "x".to_owned()]);
            Grid::new(columns, false, fit).rows(rows).join("\n")
        };
        assert_eq!(
            rows(None),
            "e\u{301}e\u{301}e\u{301}       x\n新しい    x\nabcdefg   x"
        );
        assert_eq!(
            rows(Some(9)),
            "e\u{301}e\u{301}e\u{301}     x\n新し…   x\nabcd…   x"
        );
    }

    #[test]
    fn a_cell_without_measure_fills_no_other_row() {
        let huge = "x".repeat(100_000);
        let rows = grid(false, None).rows([row([&huge, "y", "z"]), row(["1", "2", "3"])]);
        assert_eq!(
            rows[0].chars().count(),
            LONGEST + "…   y   z".chars().count()
        );
        assert_eq!(rows[1].len(), LONGEST + "1   2   3".len());
    }

    #[test]
    fn many_rows_have_the_same_columns() {
        let rows = (0..3 * BLOCK).map(|number| row([&"x".repeat(number / BLOCK + 1), "y", "z"]));
        let lines = grid(true, None).rows(rows);
        assert_eq!(lines.len(), 3 * BLOCK + 1);
        let expected = ["A     B   C", "x     y   z", "xx    y   z", "xxx   y   z"];
        let shown = [0, 1, 2 * BLOCK, 3 * BLOCK].map(|line| lines[line].as_str());
        assert_eq!(shown, expected);
    }
}
