//! One line on a terminal that indicatif updates in place: a countdown, or a count of nodes.

use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::layout::cut::cut;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

/// The width if that of the terminal is unknown.
const USUAL_WIDTH: u16 = 80;

/// Columns to leave free after the line. A terminal prints `^C` there, which would wrap otherwise.
const FREE: u16 = 3;

/// The line that is shown on this process's terminal.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Before the line, if a count is known.
const BAR: &str = "[{bar:20}] ";

/// Its columns.
const BAR_WIDTH: usize = 23;

/// Shows `line`, or as much of it as fits, in place of the last one; after a bar if it is known how many there are in `all`.
pub(super) fn draw(line: &str, done: usize, all: Option<usize>) {
    let (bar, bar_width) = all.map_or(("", 0), |_| (BAR, BAR_WIDTH));
    let Ok(style) = ProgressStyle::with_template(&format!("{bar}{{wide_msg}}")) else {
        return;
    };
    let width = usize::from(Stderr.width()).saturating_sub(bar_width);
    let line = cut(line, width).into_owned();
    let mut shown = shown();
    let bar = shown.get_or_insert_with(|| {
        let all = all.map(|all| all as u64);
        ProgressBar::with_draw_target(all, ProgressDrawTarget::term_like(Box::new(Stderr)))
    });
    bar.clone()
        .with_style(style.progress_chars("=> "))
        .with_position(done as u64)
        .with_message(line)
        .tick();
}

/// Removes the line, if one is shown, to make room for others.
pub(super) fn end() {
    if let Some(bar) = shown().take() {
        bar.finish_and_clear();
    }
}

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stderr, in the form that indicatif needs.
#[derive(Debug)]
struct Stderr;

impl Stderr {
    fn move_cursor(lines: usize, direction: char) -> io::Result<()> {
        match lines {
            0 => Ok(()),
            _ => write!(io::stderr(), "\x1b[{lines}{direction}"),
        }
    }
}

impl TermLike for Stderr {
    fn width(&self) -> u16 {
        let columns = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0);
        columns.unwrap_or(USUAL_WIDTH).saturating_sub(FREE)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        Self::move_cursor(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        Self::move_cursor(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        Self::move_cursor(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        Self::move_cursor(columns, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.write_str(&format!("{line}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
