//! Messages and progress for people.

use std::fmt::Display;
use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// The progress lines on a terminal.
static UNDER_WAY: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Prints a line on stderr, because stdout is for scripts.
#[expect(
    clippy::print_stderr,
    reason = "these commands are run by people, at a terminal"
)]
pub(crate) fn print(line: impl Display) {
    UNDER_WAY.suspend(|| eprintln!("{line}"));
}

/// Prints a line of a result on stdout, for a person or a file.
#[expect(clippy::print_stdout, reason = "results are data")]
pub(crate) fn result(line: impl Display) {
    UNDER_WAY.suspend(|| println!("{line}"));
}

/// Shows progress on a terminal until this is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// `None` if stderr is not a terminal that can show it.
    pub(crate) fn start(what: impl Display) -> Option<Self> {
        if UNDER_WAY.is_hidden() {
            return None;
        }
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}").ok()?;
        let bar = ProgressBar::no_length()
            .with_style(style)
            .with_message(what.to_string());
        let bar = UNDER_WAY.add(bar);
        bar.enable_steady_tick(Duration::from_millis(100));
        Some(Self(bar))
    }

    /// Like [`Self::start`], but prints a line if progress can't be shown.
    pub(crate) fn start_or_print(what: impl Display) -> Option<Self> {
        let progress = Self::start(&what);
        if progress.is_none() {
            print(what);
        }
        progress
    }

    /// Changes the text.
    pub(crate) fn set_message(&self, what: impl Display) {
        self.0.set_message(what.to_string());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
