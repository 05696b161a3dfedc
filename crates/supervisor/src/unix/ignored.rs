//! Whether this process was started to ignore a signal, as by `nohup`.

use std::process::{Command, Stdio};

/// A shell that sends itself SIGHUP, and ends well if it ignores that.
const PROBE: [&str; 3] = ["/bin/sh", "-c", "kill -HUP $$"];

/// Whether this process ignores SIGHUP: then its children do too. Only before something listens to it: a new process
/// ignores no signal that its parent catches.
pub(crate) fn ignores_hang_up() -> bool {
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
    use super::*;

    #[test]
    fn an_ignored_signal_is_inherited() {
        let [shell, option, script] = PROBE;
        let ignoring = format!("trap '' HUP; {shell} {option} '{script}'; exit $?");
        assert!(succeeds(&[shell, option, &ignoring]));
        assert!(!succeeds(&PROBE));
    }
}
