//! Whether SIGHUP was ignored when this process started, as by `nohup`.

use std::io;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::Signal;

/// A shell that sends itself SIGHUP, and exits with 0 if it ignores it.
const PROBE: [&str; 3] = ["/bin/sh", "-c", "kill -HUP $$"];

/// Children inherit that a signal is ignored, but no handler.
static IGNORES_SIGHUP: LazyLock<bool> = LazyLock::new(|| succeeds(&PROBE));

/// The signals that this process was started to ignore, as far as this system shows them: at most HUP. Its parent wants
/// it, and all processes that it starts, to survive them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored {
    hangup: bool,
}

impl Ignored {
    /// Those of this process. The first call must be before there is a handler for HUP. It starts a process, and waits
    /// for it.
    ///
    /// # Errors
    ///
    /// None on this system. If it can't be found out, the signal counts as not ignored.
    pub fn now() -> io::Result<Self> {
        Ok(Self {
            hangup: *IGNORES_SIGHUP,
        })
    }

    /// Whether `signal` is one of them.
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
        // The children of a process that catches it have its default, even if this one was started to ignore it.
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
