//! One line on a terminal that is rewritten in place, such as a countdown.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Terminal;

/// Where the width of a terminal can't be learnt.
const USUAL_WIDTH: usize = 80;

/// Goes to the beginning of the line and erases it.
const ERASE: &str = "\r\x1b[2K";

/// Whether such a line stands on the terminal of this process.
static SHOWN: AtomicBool = AtomicBool::new(false);

impl Terminal {
    /// How many columns a line may have that is rewritten; `None` where nobody wants to look at one,
    /// or stderr can't rewrite it.
    pub(crate) fn live_width(&self) -> Option<usize> {
        let stderr = std::io::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if self.quiet || is_dumb || !stderr.is_terminal() {
            return None;
        }
        let columns = terminal_size::terminal_size_of(stderr).map(|(width, _)| width.0.into());
        // In the last column a cursor may already stand on the next line.
        Some(columns.unwrap_or(USUAL_WIDTH).saturating_sub(1))
    }

    /// Shows `line`, which fits, in place of the one that was shown before.
    pub(crate) fn live(&self, line: &str) {
        SHOWN.store(true, Ordering::Relaxed);
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{ERASE}{line}").and_then(|()| stderr.flush());
    }

    /// Takes the line away, if one is shown, so that others come in its place.
    pub(crate) fn end_live(&self) {
        if SHOWN.swap(false, Ordering::Relaxed) {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "{ERASE}").and_then(|()| stderr.flush());
        }
    }
}
