//! Tables as `kubectl get` prints them, with comfy-table for the layout. They are at most as wide as the
//! terminal.

use anstyle::Style;
use comfy_table::{
    ColumnConstraint, ContentArrangement, ContentLineStyle, Row, Table, TableStyle, Width,
};
use maintenance_lease::LONGEST_REASON;

/// The space between columns.
const GAP: &str = "   ";

/// The separator that comfy-table puts between cells, to split a line into its cells. Text that is safe to
/// print never contains it.
const BORDER: char = '\t';

/// The widest column, which is the length of our longest reason. All rows are padded to the width of their
/// columns, and other tools may write a holder of one megabyte: a thousand rows would take a gigabyte.
const WIDEST: usize = LONGEST_REASON;

/// The text of a cell, safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// The same with a style, for terminals that support it.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// The part of the text that may be shown in a column, because laying out more is slow.
    fn beginning(&self) -> &str {
        match self.text.char_indices().nth(2 * WIDEST) {
            Some((end, _)) => &self.text[..end],
            None => &self.text,
        }
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

/// A table that can be printed in parts: later rows are aligned with the same headers.
#[derive(Debug)]
pub(crate) struct Grid {
    /// `None`: already printed, or not wanted.
    headers: Option<Vec<Cell>>,
    /// The width to fit into if the output is a terminal.
    fit: Option<usize>,
    /// The columns to cut if the table does not fit, in this order. Each has a minimum width at which it is
    /// still useful.
    cuts: Vec<(usize, usize)>,
    /// The width of each column so far.
    widths: Vec<usize>,
    /// The width to reserve in each column for later rows, if there is room.
    reserved: Vec<usize>,
    /// Whether some rows were printed: their columns can't become narrower.
    begun: bool,
}

impl Grid {
    /// A table with these `headers`, which are printed only if `shown`.
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

    /// Reserves room for later rows, as far as the terminal has it.
    pub(crate) fn reserve(&mut self, widths: impl IntoIterator<Item = usize>) {
        self.reserved = widths.into_iter().collect();
    }

    /// The text of some rows, after the headers if these are the first rows.
    pub(crate) fn rows(&mut self, cells: Vec<Vec<Cell>>) -> String {
        let mut rows: Vec<Vec<Cell>> = self.headers.take().into_iter().collect();
        rows.extend(cells);
        let mut table = Table::new();
        let border = ContentLineStyle::none().junction(BORDER);
        table.load_style(TableStyle::new().content_lines(border));
        // Cells are cut anywhere, not only between words.
        table.set_delimiter(BORDER);
        for row in &rows {
            let mut row = Row::from(row.iter().map(Cell::beginning));
            row.max_height(1);
            table.add_row(row);
        }
        self.widen(&table.column_max_content_widths());
        for (column, &width) in table.column_iter_mut().zip(&self.widths) {
            let width = Width::Fixed(width.try_into().unwrap_or(u16::MAX));
            column.set_padding((0, 0));
            column.set_constraint(ColumnConstraint::Absolute(width));
        }
        let lines = table.lines().zip(&rows);
        let lines: Vec<String> = lines.map(|(line, row)| self.finish(&line, row)).collect();
        lines.join("\n")
    }

    /// Makes each column as wide as its widest cell so far, within the terminal's width. If the rows don't
    /// fit even after cutting, nothing is cut, because a wrapped row with its full text is more useful.
    fn widen(&mut self, measured: &[u16]) {
        let mut whole = self.widths.clone();
        for (width, &measured) in whole.iter_mut().zip(measured) {
            *width = usize::from(measured).min(WIDEST).max(*width);
        }
        let reserved = whole.iter().zip(&self.reserved);
        let reserved = reserved.map(|(a, b)| *a.max(b)).collect();
        self.widths = match self.fit {
            None => reserved,
            Some(fit) => self
                .fitted(&whole, reserved, fit)
                .unwrap_or_else(|| self.wrapped(whole, fit)),
        };
        self.reserved.fill(0);
        self.begun = true;
    }

    /// `widths` reduced to fit a terminal of `fit` columns. Space reserved for later rows, beyond the
    /// widths in `whole`, goes before anything is cut. `None`: it does not fit.
    fn fitted(&self, whole: &[usize], mut widths: Vec<usize>, fit: usize) -> Option<Vec<usize>> {
        let spare = self.cuts.iter();
        let spare = spare.map(|&(column, least)| (column, least.max(whole[column])));
        let other = whole.iter().copied().enumerate();
        let cut = self.cuts.iter().map(|&(column, least)| {
            // The last column may be narrower than in earlier rows, because nothing follows it.
            let is_free = !self.begun || column == whole.len() - 1;
            (column, if is_free { least } else { self.widths[column] })
        });
        let all = widths.iter().sum::<usize>() + GAP.len() * (widths.len() - 1);
        let mut excess = all.saturating_sub(fit);
        for (column, least) in spare.chain(other).chain(cut) {
            let less = excess.min(widths[column].saturating_sub(least));
            widths[column] -= less;
            excess -= less;
        }
        (excess == 0).then_some(widths)
    }

    /// Column widths if the terminal wraps the rows anyway. Free text is limited to one line of the
    /// terminal, because all other rows are padded to the same width.
    fn wrapped(&self, mut whole: Vec<usize>, fit: usize) -> Vec<usize> {
        for &(column, least) in &self.cuts {
            whole[column] = whole[column].min(fit.max(least));
        }
        whole
    }

    /// A line with its gaps and styles, without trailing spaces. Cells are cut only for a terminal;
    /// elsewhere a cell that is too wide moves the rest of its row.
    fn finish(&self, line: &str, row: &[Cell]) -> String {
        let mut finished = String::new();
        for (index, (filled, Cell { text, style })) in line.split(BORDER).zip(row).enumerate() {
            if index > 0 {
                finished.push_str(GAP);
            }
            let shown = filled.trim_end_matches(' ');
            let filling = &filled[shown.len()..];
            let shown = match self.fit {
                Some(_) => shown,
                None => text.trim_end_matches(' '),
            };
            finished.push_str(&format!("{style}{shown}{style:#}{filling}"));
        }
        finished.truncate(finished.trim_end_matches(' ').len());
        finished
    }
}

/// `words` after `head`, wrapped to at most `width` columns if the words are short enough. Later lines are
/// aligned with the first word. Without a `width` it is one line.
pub(crate) fn hanging(head: &str, words: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return format!("{head}{words}");
    };
    let longest = words.split(' ').map(|word| word.chars().count()).max();
    let as_width = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
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
    use anstyle::AnsiColor;
    use unicode_width::UnicodeWidthStr as _;

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
        let filled_up = WIDEST + GAP.len() + 1;
        assert_eq!(rows(None), [2 * WIDEST + GAP.len() + 1, filled_up]);
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
    #[test]
    fn what_a_character_takes_on_a_terminal_counts() {
        let rows = |fit| {
            let cells = ["e\u{301}e\u{301}e\u{301}", "新しい", "abcdefg"];
            let cells = cells.map(|text| vec![text.into(), "x".into()]);
            Grid::new(&["", ""], false, fit, vec![(0, 1)]).rows(cells.to_vec())
        };
        assert_eq!(
            rows(None),
            "e\u{301}e\u{301}e\u{301}       x\n新しい    x\nabcdefg   x"
        );
        assert_eq!(
            rows(Some(9)),
            "e\u{301}e\u{301}e\u{301}     x\n新し…   x\nabcd…   x"
        );
        assert_eq!(
            rows(Some(8)),
            "e\u{301}e\u{301}e\u{301}    x\n新…    x\nabc…   x"
        );
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
