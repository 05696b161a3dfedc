//! The messages between a caller and its supervisor.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::{Exit, Limits, Signal};

/// A message from the caller to the supervisor. The end of the stream means that the caller is gone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first order.
    Start(Start),
    Limits(Limits),
    End(Limits),
    /// Sends a signal to the command's process group.
    Signal(Signal),
    /// Stops all processes until [`Order::Thaw`].
    Freeze,
    Thaw,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) argv: Vec<OsString>,
    pub(crate) limits: Limits,
    /// The grace period in microseconds.
    pub(crate) grace: i64,
    /// Whether the command gets the terminal before it starts.
    pub(crate) foreground: bool,
}

/// A message from the supervisor to the caller.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum SupervisorReport {
    Started {
        pid: i32,
    },
    /// The command did not start, because the time limit had passed.
    TooLate,
    /// The command did not start, because of this error.
    Failed {
        errno: i32,
    },
    Stopped(Signal),
    OutOfTime,
    Frozen,
    Thawed,
    Exited(Exit),
    Left(usize),
    /// The supervisor is alive and kills the remaining processes, which is its last task.
    Killing,
    /// The last report, with the number of processes that may still run.
    Ended(usize),
}
