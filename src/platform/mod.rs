//! What differs between operating systems: the terminal, accounts, executable files, and how the shell quotes.

mod shell;

use std::ffi::OsStr;

pub(crate) use shell::{is_quotable, quoted};

/// Whether `with` ends a stopped command (Ctrl-Z) at its deadline.
pub(crate) const ENDS_STOPPED_COMMANDS: bool = cfg!(target_os = "linux");

/// The command that kills a process, without the process id.
pub(crate) const KILL: &str = match cfg!(windows) {
    true => "taskkill /F /PID",
    false => "kill -KILL",
};

/// Whether a terminal cannot rewrite a line, according to the value of `TERM`.
pub(crate) fn is_dumb(term: Option<&OsStr>) -> bool {
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
pub(crate) use unix::{TerminalModes, account, discard_typed, has_escape_sequences, is_executable};
#[cfg(windows)]
pub(crate) use windows::{
    TerminalModes, account, discard_typed, has_escape_sequences, is_executable,
};

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
