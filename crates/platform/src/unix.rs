//! Linux, macOS and other Unix systems.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use rustix::fs::{Access, access};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use supervisor::{Ignored, Signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

/// Whether the terminal interprets escape sequences. Only `TERM` can show that it does not.
pub fn has_escape_sequences() -> bool {
    true
}

/// The account name of the process, for daemons and containers that have no variable for it.
pub fn account() -> String {
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
pub fn discard_typed(stdin: &io::Stdin) {
    // If stdin is not a terminal, there is nothing to discard.
    let _ = tcflush(stdin, QueueSelector::IFlush);
}

/// The modes of the terminal at stdin, such as whether it shows typed characters.
pub struct TerminalModes(Option<Termios>);

impl TerminalModes {
    /// The current modes.
    pub fn now(stdin: &io::Stdin) -> Self {
        Self(tcgetattr(stdin).ok())
    }

    /// Sets these modes again.
    pub fn restore(&self, stdin: &io::Stdin) {
        if let Some(modes) = &self.0 {
            // An error means that the terminal is gone.
            let _ = tcsetattr(stdin, OptionalActions::Now, modes);
        }
    }
}

/// Whether this process may execute `file`.
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Completes at Ctrl-C.
pub(super) async fn interrupted() {
    sent(Signal::INT).await;
}

/// Completes if this process is asked to end.
pub(super) async fn terminated() {
    sent(Signal::TERM).await;
}

/// Completes at Ctrl-\. It releases the locks, like Ctrl-C, because a core dump would not help.
pub(super) async fn quit() {
    sent(Signal::QUIT).await;
}

/// Completes if the terminal is gone.
pub(super) async fn hung_up() {
    sent(Signal::HUP).await;
}

/// The signals that were ignored at the start; `None` if unknown.
static IGNORED: LazyLock<Option<Ignored>> = LazyLock::new(|| Ignored::now().ok());

/// Completes when the signal arrives. Never completes if it is ignored or can't be handled.
async fn sent(wanted: Signal) {
    if !is_ignored(wanted).await
        && let Ok(mut signal) = signal(SignalKind::from_raw(wanted.0))
    {
        signal.recv().await;
    } else {
        std::future::pending::<()>().await;
    }
}

/// Whether `signal` was ignored at the start, for example because of `nohup`. Linux shows this immediately.
/// Other systems show it only for SIGHUP, and a process must be started for it.
async fn is_ignored(signal: Signal) -> bool {
    let ignored = match signal {
        _ if cfg!(target_os = "linux") => *IGNORED,
        Signal::HUP => spawn_blocking(|| *IGNORED).await.ok().flatten(),
        _ => return false,
    };
    // If this is unknown, SIGHUP counts as ignored here, so it keeps its default effect.
    ignored.map_or(signal == Signal::HUP, |ignored| ignored.has(signal))
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
