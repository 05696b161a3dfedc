//! Tables as `kubectl get` prints them, within the width of a terminal. comfy-table aligns and cuts the
//! cells.

use std::borrow::Cow;

use comfy_table::{ColumnConstraint, Row, Table, TableStyle, Width};
use unicode_width::UnicodeWidthStr as _;

use crate::layout::wrap::hanging;

/// The space between columns.
pub(crate) const GAP: &str = "   ";

/// How many rows are laid out at once. comfy-table needs many times the memory of its text.
const BLOCK: usize = 256;

/// The maximum length of a cell in characters. Some cells come from other tools, which may write a megabyte.
pub(crate) const LONGEST: usize = 1024;

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its header.
    pub(crate) header: String,
    /// The minimum width to which its cells may be cut to fit a terminal; `None` if they are never cut. At
    /// most one column of a table may be cut.
    pub(crate) least: Option<u16>,
}

impl Column {
    /// A column whose cells are never cut.
    #[must_use]
    pub(crate) fn uncut(header: impl Into<String>) -> Self {
        Self {
            header: header.into(),
            least: None,
        }
    }
}

/// A table that can be printed in parts. Later rows are aligned with the first rows.
#[derive(Debug)]
pub(crate) struct AlignedTable {
    columns: Vec<Column>,
    /// Whether the headers must still be printed.
    headers: bool,
    /// The width of the terminal, if the output is a terminal.
    fit: Option<usize>,
    /// A sample of later rows, for which room is reserved. It is not printed.
    typical: Option<Vec<String>>,
    /// The widths of the columns in the first part.
    widths: Option<Vec<u16>>,
}

impl AlignedTable {
    /// Creates a table without rows. `fit` is the width of the terminal, if the output is a terminal.
    #[must_use]
    pub(crate) fn new(columns: Vec<Column>, headers: bool, fit: Option<usize>) -> Self {
        Self {
            columns,
            headers,
            fit,
            typical: None,
            widths: None,
        }
    }

    /// Reserves room for later rows that look like this one, if the terminal is wide enough.
    #[must_use]
    pub(crate) fn with_typical(self, row: Vec<String>) -> Self {
        Self {
            typical: Some(row),
            ..self
        }
    }

    /// Whether the terminal is wide enough for `rows` as the first rows, and for later rows that look like
    /// the typical row.
    #[must_use]
    pub(crate) fn fits(&self, rows: &[Vec<String>]) -> bool {
        let mut needed = needed(rows);
        let others = self.headers().into_iter().chain(self.typical.clone());
        others.for_each(|row| widen(&mut needed, &row));
        self.fitting(&needed).is_some()
    }

    /// The lines of some rows, after the headers if these are the first rows.
    pub(crate) fn rows(&mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
        let headers = self.headers();
        self.headers = false;
        let rows: Vec<Vec<String>> = headers.into_iter().chain(rows).collect();
        let needed = needed(&rows);
        let widths = match &self.widths {
            None => self.first_widths(needed),
            Some(first) => self.later_widths(first, &needed),
        };
        let blocks = rows.chunks(BLOCK);
        let lines = blocks.flat_map(|block| lines(block, &widths, GAP));
        let lines = lines.map(|line| line.trim_end().to_owned()).collect();
        self.widths.get_or_insert(widths);
        lines
    }

    fn headers(&self) -> Option<Vec<String>> {
        let headers = self.columns.iter().map(|column| column.header.clone());
        self.headers.then(|| headers.collect())
    }

    /// The widths for the first rows, which need at least `needed_now`. Room for the typical row is reserved
    /// only if all of it fits.
    fn first_widths(&self, needed_now: Vec<u16>) -> Vec<u16> {
        let mut with_typical = needed_now.clone();
        self.typical
            .iter()
            .for_each(|row| widen(&mut with_typical, row));
        self.fitting(&with_typical)
            .or_else(|| self.fitting(&needed_now))
            .unwrap_or_else(|| self.too_wide(needed_now))
    }

    /// The widths if the rows do not fit and the terminal wraps them. One long cell must not cause all rows
    /// to wrap. The last column is not padded, so its cells are not cut.
    fn too_wide(&self, needed: Vec<u16>) -> Vec<u16> {
        let last = self.columns.len().saturating_sub(1);
        let columns = self.columns.iter().zip(needed).enumerate();
        columns
            .map(|(index, (column, needed))| match column.least {
                Some(least) if index < last => needed.min(least),
                _ => needed,
            })
            .collect()
    }

    /// The widths for later rows: those of the first rows, with two exceptions. Columns that are never cut
    /// may become wider. If the last column may be cut, it gets the rest of the terminal.
    fn later_widths(&self, first: &[u16], needed: &[u16]) -> Vec<u16> {
        let widths = self.columns.iter().zip(first).zip(needed);
        let mut widths: Vec<u16> = widths
            .map(|((column, &first), &needed)| match column.least {
                Some(_) if self.fit.is_some() => first,
                _ => first.max(needed),
            })
            .collect();
        if let (Some(fit), Some(least), Some((last, others))) = (
            self.fit,
            self.columns.last().and_then(|it| it.least),
            widths.split_last_mut(),
        ) {
            let left = as_width(fit.saturating_sub(whole(others) + GAP.len()));
            *last = if left < least {
                needed[others.len()]
            } else {
                left
            };
        }
        widths
    }

    /// The widths, if the terminal is wide enough for them. The column that may be cut gets the width that
    /// the others leave.
    fn fitting(&self, needed: &[u16]) -> Option<Vec<u16>> {
        let mut widths = needed.to_vec();
        let excess = whole(&widths).saturating_sub(self.fit.unwrap_or(usize::MAX));
        if excess > 0 {
            let mut columns = self.columns.iter().zip(&mut widths);
            let (least, width) =
                columns.find_map(|(column, width)| Some((column.least?, width)))?;
            let left = usize::from(*width).checked_sub(excess).map(as_width);
            *width = left.filter(|&left| left >= least)?;
        }
        Some(widths)
    }
}

/// The first of the tables that fits, otherwise the last one, with its rows.
pub(crate) fn first_to_fit<R>(tables: impl IntoIterator<Item = (AlignedTable, R)>) -> String
where
    R: IntoIterator<Item = Vec<String>>,
{
    let mut shown = String::new();
    for (mut table, rows) in tables {
        let rows: Vec<_> = rows.into_iter().collect();
        let fits = table.fits(&rows);
        shown = table.rows(rows).join("\n");
        if fits {
            break;
        }
    }
    shown
}

/// The width of a whole row.
fn whole(widths: &[u16]) -> usize {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    gaps + widths.iter().copied().map(usize::from).sum::<usize>()
}

/// The width that each column needs for these rows.
fn needed(rows: &[Vec<String>]) -> Vec<u16> {
    let mut needed = Vec::new();
    rows.iter().for_each(|row| widen(&mut needed, row));
    needed
}

/// Widens the columns for `row`.
fn widen(widths: &mut Vec<u16>, row: &[String]) {
    widths.resize(widths.len().max(row.len()), 0);
    for (width, cell) in widths.iter_mut().zip(row) {
        *width = as_width(truncated(cell).width()).max(*width);
    }
}

/// The minimum width for the text beside the cells. If there is less, the text gets its own lines.
const LEAST_WORDS: usize = 24;

/// Rows of aligned cells, each followed by text that is wrapped within `fit` and stays aligned. `least`
/// contains the minimum widths of the cells. comfy-table does not wrap the text, because it would split
/// commands that users paste.
pub(crate) fn with_words(
    rows: impl IntoIterator<Item = (Vec<String>, String)>,
    least: &[u16],
    gap: &str,
    fit: Option<usize>,
) -> String {
    let (cells, words): (Vec<_>, Vec<String>) = rows.into_iter().unzip();
    let mut widths = needed(&cells);
    for (width, &least) in widths.iter_mut().zip(least) {
        *width = least.max(*width);
    }
    let heads = lines(&cells, &widths, gap);
    let lines = heads.into_iter().zip(&words).map(|(head, words)| {
        match fit.is_some_and(|fit| fit < head.width() + LEAST_WORDS) {
            true => format!("{}\n{}", head.trim_end(), hanging("    ", words, fit)),
            false => hanging(&head, words, fit),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines of some rows. Each cell fills its column, and is cut if it is longer, even within a word.
fn lines(rows: &[Vec<String>], widths: &[u16], gap: &str) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_delimiter('\t');
    for row in rows {
        let mut row = Row::from(row.iter().map(|cell| truncated(cell)));
        row.max_height(1);
        table.add_row(row);
    }
    let gap = as_width(gap.len());
    for (column, width) in table.column_iter_mut().zip(widths) {
        let width = Width::Fixed(width.saturating_add(gap));
        column
            .set_padding((0, gap))
            .set_constraint(ColumnConstraint::Absolute(width));
    }
    table.lines().collect()
}

/// The cell, or only its start if it is too long.
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
    fn aligned(headers: bool, fit: Option<usize>) -> AlignedTable {
        let cuts = [("A", None), ("B", Some(3)), ("C", None)];
        let columns = cuts.map(|(header, least)| Column {
            least,
            ..Column::uncut(header)
        });
        AlignedTable::new(columns.to_vec(), headers, fit)
    }

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(ToOwned::to_owned).to_vec()
    }

    #[test]
    fn only_one_column_is_cut() {
        let shown = |fit| {
            let row = row(["one", "12345678", "abcdefgh"]);
            aligned(false, fit).rows([row]).join("\n")
        };
        assert_eq!(shown(None), "one   12345678   abcdefgh");
        assert_eq!(shown(Some(25)), "one   12345678   abcdefgh");
        assert_eq!(shown(Some(22)), "one   1234…   abcdefgh");
        assert_eq!(shown(Some(20)), "one   12…   abcdefgh");
        assert_eq!(
            shown(Some(19)),
            "one   12…   abcdefgh",
            "the terminal wraps it anyway"
        );
    }

    #[test]
    fn a_long_cell_pads_no_other_row_of_a_terminal_that_is_too_narrow() {
        let mut table = aligned(false, Some(12));
        let long = row(["one", &"x".repeat(200), "abcdefgh"]);
        assert_eq!(
            table.rows([long, row(["1", "2", "3"])]),
            ["one   xx…   abcdefgh", "1     2     3"]
        );
        let mut last = AlignedTable::new(
            vec![
                Column::uncut(""),
                Column {
                    least: Some(3),
                    ..Column::uncut("")
                },
            ],
            false,
            Some(6),
        );
        let rows = [["one", "12345678"], ["1", "2"]];
        let rows = rows.map(|cells| cells.map(ToOwned::to_owned).to_vec());
        assert_eq!(last.rows(rows), ["one   12345678", "1     2"]);
    }

    #[test]
    fn the_first_table_that_fits_is_shown() {
        let first = |fit| {
            let tables = [["1234", ""], ["12", "123"], ["新", ""]].map(|cells| {
                let table = AlignedTable::new(vec![Column::uncut("")], false, fit);
                (table, cells.map(|cell| vec![cell.to_owned()]).to_vec())
            });
            first_to_fit(tables)
        };
        assert_eq!(first(None), "1234\n");
        assert_eq!(first(Some(4)), "1234\n");
        assert_eq!(first(Some(3)), "12\n123");
        assert_eq!(first(Some(2)), "新\n");
        assert_eq!(first(Some(1)), "新\n", "the terminal wraps it anyway");
    }

    #[test]
    fn later_rows_keep_the_widths() {
        let mut table = aligned(true, Some(30)).with_typical(row(["12345", "1234567", "123"]));
        assert_eq!(
            table.rows([row(["1", "2", "3"])]),
            ["A       B         C", "1       2         3"]
        );
        let later = row(["1234", "a long word", "more than that"]);
        assert_eq!(table.rows([later]), ["1234    a long…   more than that"]);
        let named = row(["a-long-name", "a long word", "more"]);
        assert_eq!(table.rows([named]), ["a-long-name   a long…   more"]);
        let short = row(["1", "2", "3"]);
        assert_eq!(table.rows([short]), ["1       2         3"]);
    }

    #[test]
    fn a_last_column_that_may_be_cut_has_the_rest_of_the_terminal() {
        let columns = [None, Some(3)].map(|least| Column {
            least,
            ..Column::uncut("")
        });
        let mut table = AlignedTable::new(columns.to_vec(), false, Some(16));
        let mut shown = |name: &str| {
            let row = vec![name.to_owned(), "a long word".to_owned()];
            table.rows([row]).join("\n")
        };
        assert_eq!(shown("1"), "1   a long word");
        assert_eq!(shown("1234"), "1234   a long w…");
        assert_eq!(shown("1234567890"), "1234567890   a …");
        assert_eq!(shown("12345678901"), "12345678901   a long word");
        assert_eq!(shown("12"), "12   a long word", "{table:?}");
    }

    #[test]
    fn a_typical_row_takes_no_room_that_the_first_rows_need() {
        let typical = row(["12345", "1234567", "123"]);
        let mut narrow = aligned(false, Some(17)).with_typical(typical.clone());
        assert_eq!(
            narrow.rows([row(["12", "12345", "123456"])]),
            ["12   12…   123456"]
        );
        let mut piped = aligned(false, None).with_typical(typical);
        assert_eq!(piped.rows([row(["1", "2", "3"])]), ["1       2         3"]);
    }

    #[test]
    fn characters_count_by_their_width_on_a_terminal() {
        let rows = |fit| {
            let cells = ["e\u{301}e\u{301}e\u{301}", "新しい", "abcdefg"];
            let mut columns = vec![Column::uncut(""), Column::uncut("")];
            columns[0].least = Some(1);
            let rows = cells.map(|text| vec![text.to_owned(), "x".to_owned()]);
            AlignedTable::new(columns, false, fit).rows(rows).join("\n")
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
        let rows = aligned(false, None).rows([row([&huge, "y", "z"]), row(["1", "2", "3"])]);
        assert_eq!(
            rows[0].chars().count(),
            LONGEST + "…   y   z".chars().count()
        );
        assert_eq!(rows[1].len(), LONGEST + "1   2   3".len());
    }

    #[test]
    fn many_rows_have_the_same_columns() {
        let rows = (0..3 * BLOCK).map(|number| row([&"x".repeat(number / BLOCK + 1), "y", "z"]));
        let lines = aligned(true, None).rows(rows);
        assert_eq!(lines.len(), 3 * BLOCK + 1);
        let expected = ["A     B   C", "x     y   z", "xx    y   z", "xxx   y   z"];
        let shown = [0, 1, 2 * BLOCK, 3 * BLOCK].map(|line| lines[line].as_str());
        assert_eq!(shown, expected);
    }
}
