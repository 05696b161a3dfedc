//! Runs of the plugin and kubectl in an empty environment.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-maint");

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// Runs `command` to its end.
pub(crate) fn run(command: &mut Command) -> Run {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the program is there");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        code: output.status.code().expect("it was not killed"),
    }
}

/// Runs the plugin with this kubeconfig.
pub(crate) fn maint(kubeconfig: &Path, arguments: &[&str]) -> Run {
    run(Command::new(PLUGIN)
        .args(arguments)
        .env_clear()
        .env("KUBECONFIG", kubeconfig))
}

/// A directory for PATH that contains the plugin under both of its names.
pub(crate) struct Installed {
    directory: TempDir,
    plugin: String,
}

impl Installed {
    pub(crate) fn new() -> Self {
        Self::named("kubectl-maint")
    }

    /// The plugin under the name `kubectl-NAME`.
    pub(crate) fn named(plugin: &str) -> Self {
        let installed = Self {
            directory: tempfile::tempdir().expect("a directory"),
            plugin: plugin.to_owned(),
        };
        for link in [installed.plugin(), installed.completer()] {
            symlink(PLUGIN, link).expect("a link");
        }
        installed
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn plugin(&self) -> PathBuf {
        self.path().join(&self.plugin)
    }

    pub(crate) fn completer(&self) -> PathBuf {
        let completer = self.plugin.replacen("kubectl-", "kubectl_complete-", 1);
        self.path().join(completer)
    }
}
