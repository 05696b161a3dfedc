//! Windows.

use std::future::pending;
use std::io;
use std::path::Path;

use supervisor::find_program;
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

/// A fallback: on Windows, the variable `USERNAME` is set.
pub fn account() -> String {
    "unknown".to_owned()
}

/// Whether the console interprets escape sequences. Old ones don't.
pub fn has_escape_sequences() -> bool {
    anstyle_query::windows::enable_ansi_colors() == Some(true)
}

/// Does nothing: on Windows, input typed early answers the next question.
pub fn discard_typed(_stdin: &io::Stdin) {}

/// The modes of the terminal. On this platform, dialoguer does not change them.
pub struct TerminalModes;

impl TerminalModes {
    /// The present ones.
    pub fn now(_stdin: &io::Stdin) -> Self {
        Self
    }

    /// Sets them again.
    pub fn restore(&self, _stdin: &io::Stdin) {}
}

/// Whether `file` exists, also without its extension, such as `.exe`. Windows has no execute permission to check.
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
