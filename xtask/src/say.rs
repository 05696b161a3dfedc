//! What people are told while they wait.

use std::fmt::Display;

/// Prints a line on stderr: stdout is for what scripts read.
#[expect(
    clippy::print_stderr,
    reason = "these commands are run by people, at a terminal"
)]
pub(crate) fn say(line: impl Display) {
    eprintln!("{line}");
}
