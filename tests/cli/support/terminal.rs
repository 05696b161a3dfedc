//! The plugin at a terminal.

use std::process::Command;

use rexpect::session::{PtySession, spawn_command};

use super::Maint;

/// How long a test waits for a line, in milliseconds.
const LIMIT: u64 = 60_000;

/// A run at a terminal of 80 columns and 24 lines.
pub(crate) fn at_a_terminal(maint: Maint) -> PtySession {
    let maint = maint.env("TERM", "xterm").command();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", r#"stty cols 80 rows 24; exec "$0" "$@""#])
        .arg(maint.get_program())
        .args(maint.get_args())
        .env_clear()
        .envs(
            maint
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", "/usr/bin:/bin");
    spawn_command(shell, Some(LIMIT)).expect("a terminal")
}

/// `text` without line breaks, which depend on the width of the terminal.
pub(crate) fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text that was read from a terminal, which `rexpect` reads byte by byte.
pub(crate) fn as_text(read: &str) -> String {
    let bytes = read.chars().map(|c| u8::try_from(c).expect("a byte"));
    String::from_utf8(bytes.collect()).expect("output is UTF-8")
}
