//! Running cargo and other programs.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

use crate::output::{Progress, print};

/// The cargo that started this program, in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    // cargo sets variables about this package. With them, build scripts would run again.
    for (name, _) in env::vars_os() {
        let about = name.to_string_lossy();
        if about.starts_with("CARGO_PKG_") || about.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Builds the plugin in debug mode, in `debug` of the build directory.
pub(crate) fn build_plugin() -> Result<()> {
    let mut build = cargo(&["build", "--package", "kubectl-maint"]);
    run_build("kubectl-maint", build.stdout(Stdio::null()))
}

/// Builds these programs in debug mode. `--workspace` and a test give all packages the same features as in the tests, so
/// nothing is built twice.
pub(crate) fn build_like_tests(programs: &[&str]) -> Result<()> {
    let mut build = cargo(&["build", "--workspace", "--test=seeds"]);
    build.args(programs.iter().map(|program| format!("--bin={program}")));
    run_build(&programs.join(" and "), build.stdout(Stdio::null()))
}

/// Runs a cargo build. On a terminal, shows `what` is built, and the compiler's messages. Any other output gets
/// everything that cargo prints.
pub(crate) fn run_build(what: &str, build: &mut Command) -> Result<()> {
    let Some(_progress) = Progress::start(format_args!("building {what}")) else {
        return run(build);
    };
    build.arg("--quiet").stderr(Stdio::piped());
    if env::var_os("NO_COLOR").is_none() {
        build.arg("--color=always");
    }
    let mut child = build.spawn().context("failed to run cargo")?;
    let stderr = child.stderr.take().context("cargo has no stderr")?;
    for line in BufReader::new(stderr).split(b'\n') {
        print(String::from_utf8_lossy(&line?));
    }
    ensure_success(build, child.wait()?)
}

/// Whether a command exists and succeeds. It runs without input and output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("failed to run {}", command.get_program().display()))?;
    ensure_success(command, status)
}

fn ensure_success(command: &Command, status: ExitStatus) -> Result<()> {
    let what = command.get_program().display();
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
    fn failing_or_missing_commands_do_not_succeed() {
        assert!(succeeds(&mut Command::new("true")));
        assert!(!succeeds(&mut Command::new("false")));
        assert!(!succeeds(&mut Command::new("no-such-program")));
    }
}
