//! The command to run, and its settings.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter};
use std::sync::Arc;
use std::time::Duration;

/// A command. Its arguments are passed exactly as given, without a shell. It inherits this process's
/// environment, directory, stdin, stdout and stderr unless set otherwise.
///
/// The command gets the terminal, if this process has it. On Linux, if this process is alone in its job, the
/// command gets it at the start. Otherwise (in a pipeline or a script), it gets it when it first reads from it.
/// From then on, Ctrl-C and Ctrl-Z reach only the command. This process takes the terminal back when the command
/// stops or ends.
#[derive(Debug, Clone)]
pub struct Command {
    pub(crate) argv: Vec<OsString>,
    /// Variables to set, and variables to remove (`None`).
    pub(crate) environment: Vec<(OsString, Option<OsString>)>,
    pub(crate) grace: Duration,
    pub(crate) output: Option<Arc<PipeWriter>>,
}

impl Command {
    /// Creates a command. `argv` is the program and its arguments. A program without a slash is looked up in
    /// `PATH`.
    #[must_use]
    pub fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            environment: Vec::new(),
            grace: Duration::from_secs(10),
            output: None,
        }
    }

    /// Sets a variable, which replaces an inherited value. If a name is set twice, the last value counts.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let value = value.as_ref().to_owned();
        self.environment
            .push((name.as_ref().to_owned(), Some(value)));
        self
    }

    /// Removes an inherited variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), None));
        self
    }

    /// Sets the time between TERM and KILL, unless a limit is earlier. It applies to processes that the
    /// command leaves behind, and to all processes once this process is gone. The default is 10 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sends stdout and stderr of the command to a pipe, instead of to this process's stdout and stderr.
    #[must_use]
    pub fn output(mut self, output: PipeWriter) -> Self {
        self.output = Some(Arc::new(output));
        self
    }

    pub(crate) fn grace_in_micros(&self) -> i64 {
        i64::try_from(self.grace.as_micros()).unwrap_or(i64::MAX)
    }

    /// Applies the environment and the output of this command to `process`.
    pub(crate) fn set_up(&self, process: &mut std::process::Command) -> io::Result<()> {
        for (name, value) in &self.environment {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        if let Some(output) = &self.output {
            process
                .stdout(output.try_clone()?)
                .stderr(output.try_clone()?);
        }
        Ok(())
    }
}
