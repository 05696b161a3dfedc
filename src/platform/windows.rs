//! Windows.

use std::io;
use std::path::Path;

use supervisor::find_program;

/// A fallback. On Windows, the variable `USERNAME` is usually set.
pub(crate) fn account() -> String {
    "unknown".to_owned()
}

/// Whether the console interprets escape sequences. Old consoles do not.
pub(crate) fn has_escape_sequences() -> bool {
    anstyle_query::windows::enable_ansi_colors() == Some(true)
}

/// Does nothing. On Windows, input that was typed early answers the next question.
pub(crate) fn discard_typed(_stdin: &io::Stdin) {}

/// The modes of the terminal. On Windows, dialoguer does not change them.
pub(crate) struct TerminalModes;

impl TerminalModes {
    /// The current modes.
    pub(crate) fn now(_stdin: &io::Stdin) -> Self {
        Self
    }

    /// Does nothing.
    pub(crate) fn restore(&self, _stdin: &io::Stdin) {}
}

/// Whether `file` exists, with or without an extension such as `.exe`. Windows has no execute permission to
/// check.
pub(crate) fn is_executable(file: &Path) -> bool {
    Path::new(&find_program(file.as_os_str())).is_file()
}
