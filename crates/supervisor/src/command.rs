//! What to run, and how.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter};
use std::sync::Arc;
use std::time::Duration;

/// A command: its arguments exactly as given, without a shell. It uses this process's environment,
/// directory, stdin, stdout and stderr unless set otherwise.
#[derive(Debug, Clone)]
pub struct Command {
    pub(crate) argv: Vec<OsString>,
    /// Variables to set, and variables to remove.
    pub(crate) environment: Vec<(OsString, Option<OsString>)>,
    pub(crate) grace: Duration,
    pub(crate) terminal: Terminal,
    pub(crate) output: Option<Arc<PipeWriter>>,
}

/// Who has the terminal while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Terminal {
    /// The command gets the terminal, if this process has it: at once if this process is alone in its
    /// job, otherwise (in a pipeline, in a script) when the command first reads from it. From then on
    /// Ctrl-C and Ctrl-Z reach the command only. This process takes the terminal back when the command
    /// stops or ends.
    #[default]
    Auto,
    /// This process keeps it.
    Keep,
}

impl Command {
    /// `argv` is the program and its arguments. A program without a slash is looked up in `PATH`.
    #[must_use]
    pub fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            environment: Vec::new(),
            grace: Duration::from_secs(10),
            terminal: Terminal::Auto,
            output: None,
        }
    }

    /// Sets a variable, whatever is inherited. If a name is set twice, the last value counts.
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

    /// How long processes have between TERM and KILL, unless a limit is earlier: those that the command leaves
    /// behind, and all of them once this process is gone. The default is 10 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Where stdout and stderr of the command go, instead of this process's: a pipe.
    #[must_use]
    pub fn output(mut self, output: PipeWriter) -> Self {
        self.output = Some(Arc::new(output));
        self
    }

    /// Who has the terminal.
    #[must_use]
    pub fn terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = terminal;
        self
    }

    /// Gives `process` the environment and the output of this command.
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
