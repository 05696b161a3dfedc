//! Linux and macOS.

use std::io;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

/// Whether the terminal interprets escape sequences. Only `TERM` can show that it does not.
pub(crate) fn has_escape_sequences() -> bool {
    true
}

/// The account name of the process, for daemons and containers that have no variable for it.
pub(crate) fn account() -> String {
    let uid = rustix::process::getuid().as_raw();
    std::fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|accounts| account_of(uid, &accounts))
        .unwrap_or_else(|| format!("uid{uid}"))
}

/// The name of account `uid` in the text of `/etc/passwd`. Libraries for this call the C library, which a
/// static binary can't rely on.
fn account_of(uid: u32, accounts: &str) -> Option<String> {
    let uid = uid.to_string();
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(&uid)).then(|| name.to_owned())
    })
}

/// Discards input that was typed but not read yet.
pub(crate) fn discard_typed(stdin: &io::Stdin) {
    // If stdin is not a terminal, there is nothing to discard.
    let _ = tcflush(stdin, QueueSelector::IFlush);
}

/// The modes of the terminal at stdin, such as whether it shows typed characters.
pub(crate) struct TerminalModes(Option<Termios>);

impl TerminalModes {
    /// The current modes.
    pub(crate) fn now(stdin: &io::Stdin) -> Self {
        Self(tcgetattr(stdin).ok())
    }

    /// Sets these modes again.
    pub(crate) fn restore(&self, stdin: &io::Stdin) {
        if let Some(modes) = &self.0 {
            // An error means that the terminal is gone.
            let _ = tcsetattr(stdin, OptionalActions::Now, modes);
        }
    }
}

/// Whether this process may execute `file`.
pub(crate) fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_their_number() {
        let accounts = "root:x:0:0::/root:/bin/sh\nmaint:x:1001:1001::/:/bin/false\n";
        assert_eq!(account_of(1001, accounts), Some("maint".to_owned()));
        assert_eq!(account_of(100, accounts), None);
    }
}
