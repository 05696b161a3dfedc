//! Runs of the plugin in an empty environment.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// A command line of the plugin.
pub(crate) struct Maint(Command);

impl Maint {
    /// `kubectl maint` with these words, without any environment variable, not even `HOME`.
    pub(crate) fn line(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"));
        command.args(words).env_clear().stdin(Stdio::null());
        Self(command)
    }

    /// `kubectl maint` with only a verb.
    pub(crate) fn verb(verb: &str) -> Self {
        Self::line(&[verb])
    }

    /// `kubectl maint version`: it sends one request, which every user may send.
    pub(crate) fn version() -> Self {
        Self::verb("version")
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn kubeconfig(self, path: &Path) -> Self {
        self.variable("KUBECONFIG", path)
    }

    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn run(mut self) -> Run {
        let output = self.0.output().expect("the plugin was built");
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Run {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code().expect("it was not killed"),
        }
    }

    /// Runs it and expects the server's version.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Run {
        let run = self.run();
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.contains("Server Version: v1."), "{run:?}");
        run
    }

    /// Runs it and expects this first line on stderr, and exit code 1.
    #[track_caller]
    pub(crate) fn fails(self, expected: &str) -> Run {
        let run = self.run();
        assert_eq!(run.stderr.lines().next(), Some(expected), "{run:?}");
        assert_eq!(run.code, 1, "{run:?}");
        run
    }

    /// Runs it with `--as` for a user that the caller may not impersonate, and expects the server's refusal. Every user
    /// may read the version, but only the refusal shows which user the server sees.
    #[track_caller]
    pub(crate) fn meets_refusal_as(self, user: &str) {
        let run = self.run();
        assert!(
            run.stderr.starts_with("Error from server (Forbidden): "),
            "{run:?}"
        );
        assert!(
            run.stderr
                .contains(&format!("User \"{user}\" cannot impersonate")),
            "{run:?}"
        );
        assert_eq!(run.code, 1, "{run:?}");
    }
}
