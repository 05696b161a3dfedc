//! The reasons why a command was not started.

use std::io;

use thiserror::Error;

/// A command was not started, and none of its processes runs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no command.
    #[error("there is no command to run")]
    NoCommand,
    /// This process already runs a command. With two commands, descendants could not be assigned to one of
    /// them.
    #[error("a command already runs under this process")]
    Busy,
    /// `/proc` does not show this process, or shows another process namespace.
    #[error("/proc cannot be used to find the processes of a command: {0}")]
    NoProc(#[source] io::Error),
    /// The time limit passed before the command started.
    #[error("there is no time left to run the command")]
    TooLate,
    /// The supervisor can't be started.
    #[error("failed to start the command's supervisor: {0}")]
    Supervisor(#[source] io::Error),
    /// The supervisor can't create another process. A command that does not exist or can't be executed is no
    /// error here: it has the exit code 127 or 126.
    #[error("failed to start a process for the command: {0}")]
    Spawn(#[source] io::Error),
}
