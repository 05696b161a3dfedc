//! Whether SIGHUP was ignored when this process started, for example because of `nohup`.

use std::io;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::Signal;

/// A shell that sends itself SIGHUP. It exits with 0 if it ignores SIGHUP.
const PROBE: [&str; 3] = ["/bin/sh", "-c", "kill -HUP $$"];

/// Children inherit ignored signals but no handlers, so a child shows whether SIGHUP is ignored.
static IGNORES_SIGHUP: LazyLock<bool> = LazyLock::new(|| succeeds(&PROBE));

/// The signals that this process ignored when it was started, as far as this system shows them. This is at
/// most HUP. Its parent wants this process, and all processes that it starts, to survive them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored {
    hangup: bool,
}

impl Ignored {
    /// The ignored signals of this process. The first call must be made before a handler for HUP is
    /// installed. It starts a process, and waits for it.
    ///
    /// # Errors
    ///
    /// None on this system. If it can't be determined, the signal counts as not ignored.
    pub fn now() -> io::Result<Self> {
        Ok(Self {
            hangup: *IGNORES_SIGHUP,
        })
    }

    /// Whether `signal` is ignored.
    #[must_use]
    pub fn has(self, signal: Signal) -> bool {
        self.hangup && signal == Signal::HUP
    }
}

fn succeeds(command: &[&str]) -> bool {
    Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use tokio::signal::unix::{SignalKind, signal};

    use super::*;

    #[tokio::test]
    async fn an_ignored_signal_is_inherited() {
        // If a process catches a signal, its children have the default, even if the process ignored the
        // signal when it was started.
        let _caught = signal(SignalKind::hangup()).expect("a handler");
        let [shell, option, script] = PROBE;
        let ignoring = format!("trap '' HUP; {shell} {option} '{script}'; exit $?");
        assert!(succeeds(&[shell, option, &ignoring]));
        assert!(!succeeds(&PROBE));
    }

    #[test]
    fn only_a_hangup_is_known_to_be_ignored() {
        let ignored = |hangup| [Signal::HUP, Signal::INT].map(|it| Ignored { hangup }.has(it));
        assert_eq!(ignored(true), [true, false]);
        assert_eq!(ignored(false), [false, false]);
    }
}
