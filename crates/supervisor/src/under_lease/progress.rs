//! The progress of a command under its leases, as data for the caller to print.

use std::io;
use std::time::Duration;

use maintenance_lease::{HeldState, Lost};

use crate::{Exit, Signal};

/// An event of the command or its leases.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A lease was renewed, or shortened by somebody else. This is its current state.
    StateChanged(&'a HeldState),
    /// A lease was lost, so the command must end if it has not ended yet.
    Lost(&'a Lost, Stage),
    /// Time may have passed that no clock counted. The command is stopped until its leases have been read.
    Paused,
    /// The leases are still held, and the command continues.
    Resumed,
    /// The command was stopped (Ctrl-Z), and this process stops with it. Nothing is renewed until this
    /// process is continued. The command is ended after this time.
    Stopped(Duration),
    /// A signal that asks the command to end was forwarded, but the command still runs. Reported once.
    StillRunning {
        /// The signal.
        after: Signal,
        /// The command's process id, if it is known.
        pid: Option<u32>,
    },
    /// The command itself has ended.
    Exited(Exit),
    /// The command left this many processes behind, which are being ended.
    Left(usize),
    /// The supervisor was killed, or was stopped for too long. All processes are being ended.
    SupervisorLost,
    /// The system does not allow this process to wait for the command. All processes are being ended.
    FollowFailed(&'a io::Error),
}

/// The stage of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It did not start, and will not.
    NotStarted,
    /// It is running.
    Running,
    /// It has ended.
    Ended,
    /// It was ended because its time limit had passed.
    OutOfTime,
}
