//! Windows.

use std::future::pending;
use std::io;
use std::path::Path;

use supervisor::find_program;
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

/// A fallback. On Windows, the variable `USERNAME` is usually set.
pub fn account() -> String {
    "unknown".to_owned()
}

/// Whether the console interprets escape sequences. Old consoles do not.
pub fn has_escape_sequences() -> bool {
    anstyle_query::windows::enable_ansi_colors() == Some(true)
}

/// Does nothing. On Windows, input that was typed early answers the next question.
pub fn discard_typed(_stdin: &io::Stdin) {}

/// The modes of the terminal. On Windows, dialoguer does not change them.
pub struct TerminalModes;

impl TerminalModes {
    /// The current modes.
    pub fn now(_stdin: &io::Stdin) -> Self {
        Self
    }

    /// Does nothing.
    pub fn restore(&self, _stdin: &io::Stdin) {}
}

/// Whether `file` exists, with or without an extension such as `.exe`. Windows has no execute permission to
/// check.
pub fn is_executable(file: &Path) -> bool {
    Path::new(&find_program(file.as_os_str())).is_file()
}

/// Completes at Ctrl-C.
pub(super) async fn interrupted() {
    match ctrl_c() {
        Ok(mut listener) => drop(listener.recv().await),
        Err(_) => pending().await,
    }
}

/// Completes if Windows shuts down.
pub(super) async fn terminated() {
    match ctrl_shutdown() {
        Ok(mut listener) => drop(listener.recv().await),
        Err(_) => pending().await,
    }
}

/// Completes if the console is closed.
pub(super) async fn hung_up() {
    match ctrl_close() {
        Ok(mut listener) => drop(listener.recv().await),
        Err(_) => pending().await,
    }
}

/// Completes at Ctrl-Break.
pub(super) async fn quit() {
    match ctrl_break() {
        Ok(mut listener) => drop(listener.recv().await),
        Err(_) => pending().await,
    }
}
