//! Tables as `kubectl get` prints them. comfy-table lays them out, within the width of a terminal.

use std::borrow::Cow;

use comfy_table::{
    ColumnConstraint, ContentArrangement, ContentLineStyle, Row, Table, TableStyle, Width,
};
use maintenance_lease::LONGEST_REASON;
use unicode_width::UnicodeWidthStr as _;

/// The space between columns.
const GAP: &str = "   ";

/// The separator between cells, to find them in a line. Text that is safe to print never contains it.
const BORDER: char = '\t';

/// The longest cell, in characters, because other tools may write a holder of a megabyte.
const LONGEST: usize = LONGEST_REASON;

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) header: String,
    /// The least width to which its cells may be cut to fit a terminal. `None`: they are never cut.
    pub(crate) least: Option<u16>,
}

impl Column {
    /// A column whose cells are never cut.
    pub(crate) fn whole(header: impl Into<String>) -> Self {
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

    /// The lines of some rows, after the headers if these are the first rows.
    pub(crate) fn rows(&mut self, cells: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
        let headers = || self.columns.iter().map(|column| column.header.clone());
        let headers = self.headers.then(|| headers().collect());
        let rows: Vec<Vec<String>> = headers.into_iter().chain(cells).collect();
        self.headers = false;
        let mut table = table(rows.iter().chain(&self.typical.take()));
        if !self.fits(&self.bounds(&table)) {
            table = self::table(&rows);
        }
        self.arrange(&mut table);
        let lines: Vec<String> = table.lines().take(rows.len()).collect();
        if let Some(line) = lines.first().filter(|_| self.widths.is_none()) {
            let widths = line.split(BORDER).map(|cell| as_width(cell.width()));
            self.widths = Some(widths.collect());
        }
        let finished = lines.iter().map(|line| line.replace(BORDER, GAP));
        finished.map(|line| line.trim_end().to_owned()).collect()
    }

    /// The least width of each column: of its widest cell, or to which its cells may be cut.
    fn bounds(&self, table: &Table) -> Vec<u16> {
        let widest = table.column_max_content_widths().into_iter();
        let bounds = widest.zip(&self.columns).map(|(widest, column)| {
            let least = column.least.filter(|_| self.fit.is_some());
            least.unwrap_or(widest).min(widest)
        });
        bounds.collect()
    }

    fn fits(&self, widths: &[u16]) -> bool {
        self.fit.is_none_or(|fit| total(widths) <= fit)
    }

    /// The first rows share the terminal, and later rows keep their widths. If even the least widths don't
    /// fit, nothing is cut, because the terminal wraps the rows anyway.
    fn arrange(&self, table: &mut Table) {
        let bounds = self.bounds(table);
        let least = |width| ColumnConstraint::LowerBoundary(Width::Fixed(width));
        let constraints: Vec<ColumnConstraint> = match &self.widths {
            None if self.fits(&bounds) => bounds.into_iter().map(least).collect(),
            None => table
                .column_max_content_widths()
                .into_iter()
                .map(least)
                .collect(),
            Some(widths) => {
                let widths = widths.iter().zip(bounds);
                let mut widths: Vec<u16> = widths.map(|(&width, least)| width.max(least)).collect();
                let left = self.fit.map_or(0, |fit| fit.saturating_sub(total(&widths)));
                if let Some(last) = widths.last_mut() {
                    *last += as_width(left);
                }
                let exactly = |width| ColumnConstraint::Absolute(Width::Fixed(width));
                widths.into_iter().map(exactly).collect()
            }
        };
        // comfy-table counts one column for each gap.
        let rest = (GAP.len() - 1) * self.columns.len().saturating_sub(1);
        let width = self.fit.map_or(usize::MAX, |fit| fit.saturating_sub(rest));
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(as_width(width));
        table.set_constraints(constraints);
    }
}

/// The width of columns with gaps between them.
fn total(widths: &[u16]) -> usize {
    let all: usize = widths.iter().map(|&width| usize::from(width)).sum();
    all + GAP.len() * widths.len().saturating_sub(1)
}

/// A table of these rows. Each stays on one line, and may be cut within a word.
fn table<'a>(rows: impl IntoIterator<Item = &'a Vec<String>>) -> Table {
    let mut table = Table::new();
    let borders = ContentLineStyle::none().junction(BORDER);
    table.load_style(TableStyle::new().content_lines(borders));
    table.set_delimiter(BORDER);
    for row in rows {
        let mut row = Row::from(row.iter().map(|cell| beginning(cell)));
        row.max_height(1);
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table
}

/// A cell, or the start of one that is too long.
fn beginning(cell: &str) -> Cow<'_, str> {
    match cell.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &cell[..end]).into(),
        None => cell.into(),
    }
}

fn as_width(width: usize) -> u16 {
    width.try_into().unwrap_or(u16::MAX)
}

/// `words` after `head`, wrapped to at most `width` columns if the words are short enough. Later lines are
/// aligned with the first word. Without a `width` it is one line.
pub(crate) fn hanging(head: &str, words: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return format!("{head}{words}");
    };
    let longest = words.split(' ').map(|word| word.chars().count()).max();
    let mut table = Table::new();
    table
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(as_width(width))
        .add_row([head, words])
        .set_constraints([
            ColumnConstraint::ContentWidth,
            // A name is never split, however narrow the terminal is.
            ColumnConstraint::LowerBoundary(Width::Fixed(as_width(longest.unwrap_or(0)))),
        ]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a table whose last two columns may be cut to 3 and 5 characters.
    fn grid(headers: bool, fit: Option<usize>) -> Grid {
        let cuts = [("A", None), ("B", Some(3)), ("C", Some(5))];
        let columns = cuts.map(|(header, least)| Column {
            least,
            ..Column::whole(header)
        });
        Grid::new(columns.to_vec(), headers, fit)
    }

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(ToOwned::to_owned).to_vec()
    }

    #[test]
    fn names_are_never_cut_and_the_rest_shares_the_terminal() {
        let shown = |fit| {
            let row = row(["one", "12345678", "abcdefgh"]);
            grid(false, fit).rows([row]).join("\n")
        };
        assert_eq!(shown(None), "one   12345678   abcdefgh");
        assert_eq!(shown(Some(25)), "one   12345678   abcdefgh");
        assert_eq!(shown(Some(22)), "one   123456…   abcde…");
        assert_eq!(shown(Some(17)), "one   12…   abcd…");
        assert_eq!(
            shown(Some(16)),
            "one   12345678   abcdefgh",
            "the terminal wraps it anyway"
        );
    }

    #[test]
    fn later_rows_keep_the_widths_and_the_last_column_has_the_rest() {
        let mut grid = grid(true, Some(30)).with_typical(row(["12345", "1234567", "123"]));
        assert_eq!(
            grid.rows([row(["1", "2", "3"])]),
            ["A       B         C", "1       2         3"]
        );
        let later = row(["1234", "a long word", "more than that"]);
        assert_eq!(grid.rows([later]), ["1234    a long…   more than t…"]);
        let named = row(["a-long-name", "a long word", "more"]);
        assert_eq!(grid.rows([named]), ["a-long-name   a long…   more"]);
    }

    #[test]
    fn a_typical_row_takes_no_room_that_the_first_rows_need() {
        let typical = row(["12345", "1234567", "123"]);
        let mut narrow = grid(false, Some(16)).with_typical(typical.clone());
        assert_eq!(
            narrow.rows([row(["12", "12345", "123456"])]),
            ["12   12…   1234…"]
        );
        let mut piped = grid(false, None).with_typical(typical);
        assert_eq!(piped.rows([row(["1", "2", "3"])]), ["1       2         3"]);
    }

    #[test]
    fn what_a_character_takes_on_a_terminal_counts() {
        let rows = |fit| {
            let cells = ["e\u{301}e\u{301}e\u{301}", "新しい", "abcdefg"];
            let mut columns = vec![Column::whole(""), Column::whole("")];
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
    fn what_is_too_long_goes_on_below() {
        let words = "a grün  bc defghijklm n";
        assert_eq!(hanging("ok: ", words, None), format!("ok: {words}"));
        assert_eq!(hanging("ok: ", words, Some(80)), format!("ok: {words}"));
        assert_eq!(
            hanging("ok: ", words, Some(16)),
            "ok: a grün  bc\n    defghijklm n"
        );
        assert_eq!(
            hanging("ok: ", words, Some(10)),
            hanging("ok: ", words, Some(14)),
            "no word is cut"
        );
        assert_eq!(hanging("ok: ", "", Some(3)), "ok:");
    }
}
