//! Whether SIGHUP was ignored when this process started, as by `nohup`.

use std::process::{Command, Stdio};

/// A shell that sends itself SIGHUP, and exits with 0 if it ignores it.
const PROBE: [&str; 3] = ["/bin/sh", "-c", "kill -HUP $$"];

/// Whether this process ignores SIGHUP: then its children do too. Call it before a handler is installed: a child does
/// not inherit the handler, so it would not ignore the signal.
pub(crate) fn ignores_sighup() -> bool {
    succeeds(&PROBE)
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
}
