//! Why a command was not started.

use std::io;

use thiserror::Error;

/// A command was not started, and nothing of it runs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no command.
    #[error("there is no command to run")]
    NoCommand,
    /// This process already runs a command: descendants could not be assigned to one of them.
    #[error("a command already runs under this process")]
    Busy,
    /// `/proc` has nothing about this process, or shows another process namespace.
    #[error("/proc cannot be used to find the processes of a command: {0}")]
    NoProc(#[source] io::Error),
    /// Its time limit passed before it started.
    #[error("there is no time left to run the command")]
    TooLate,
    /// The supervisor can't be started.
    #[error("failed to start the command's supervisor: {0}")]
    Supervisor(#[source] io::Error),
    /// The supervisor can't create another process. A command that does not exist or is not executable
    /// has its own exit codes instead, 127 and 126.
    #[error("failed to start a process for the command: {0}")]
    Spawn(#[source] io::Error),
}
