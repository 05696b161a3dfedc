//! The differences between operating systems for the code in `src/`.
#![warn(missing_docs)]

mod shell;

use std::ffi::OsStr;

pub use shell::{is_quotable, quoted};

/// Whether `with` ends a stopped command (Ctrl-Z) at its deadline.
pub const ENDS_STOPPED_COMMANDS: bool = cfg!(target_os = "linux");

/// The command that kills a process, without the process id.
pub const KILL: &str = match cfg!(windows) {
    true => "taskkill /F /PID",
    false => "kill -KILL",
};

/// Whether a terminal cannot rewrite a line, according to the value of `TERM`.
pub fn is_dumb(term: Option<&OsStr>) -> bool {
    is_dumb_on(cfg!(windows), term)
}

/// Terminals on Windows do not set `TERM`.
fn is_dumb_on(windows: bool, term: Option<&OsStr>) -> bool {
    term.map_or(!windows, |term| term == "dumb")
}

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{TerminalModes, account, discard_typed, has_escape_sequences, is_executable};
#[cfg(unix)]
use unix::{hung_up, interrupted, quit, terminated};
#[cfg(windows)]
pub use windows::{TerminalModes, account, discard_typed, has_escape_sequences, is_executable};
#[cfg(windows)]
use windows::{hung_up, interrupted, quit, terminated};

/// Completes at Ctrl-C or Ctrl-\, if the terminal is gone, or if the process is asked to end, for example by
/// `timeout` or a canceled job. Signals that were ignored at the start, for example because of `nohup`, stay
/// ignored.
pub async fn termination() {
    tokio::select! {
        () = interrupted() => {}
        () = terminated() => {}
        () = hung_up() => {}
        () = quit() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_name_is_dumb_except_on_windows() {
        for (term, elsewhere, windows) in [
            (None, true, false),
            (Some("dumb"), true, true),
            (Some("xterm"), false, false),
        ] {
            let term = term.map(OsStr::new);
            assert_eq!(is_dumb_on(false, term), elsewhere, "{term:?}");
            assert_eq!(is_dumb_on(true, term), windows, "{term:?}");
        }
    }
}
