//! Running cargo and other programs.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The cargo that runs this command, in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    // What cargo says about this package to this program would make others' build scripts run anew.
    for (name, _) in env::vars_os() {
        let about = name.to_string_lossy();
        if about.starts_with("CARGO_PKG_") || about.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Builds the plugin for development, into `debug` of the build directory.
pub(crate) fn build_plugin() -> Result<()> {
    build("kubectl-maint")
}

/// Builds a program for development.
pub(crate) fn build(package: &str) -> Result<()> {
    run(cargo(&["build", "--package", package]).stdout(Stdio::null()))
}

/// Runs a command to its end, with nothing to read and nothing to see of it: whether it is there, and
/// succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command to its end, and fails where it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let what = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("failed to run {what}"))?;
    let arguments: Vec<_> = command
        .get_args()
        .map(|argument| argument.to_string_lossy())
        .collect();
    ensure!(
        status.success(),
        "`{what} {}` failed: {status}",
        arguments.join(" ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_or_is_not_there_does_not_succeed() {
        assert!(succeeds(&mut Command::new("true")));
        assert!(!succeeds(&mut Command::new("false")));
        assert!(!succeeds(&mut Command::new("no-such-program")));
    }
}
