//! What happens to a command under its leases, as data for the caller to print.

use std::io;
use std::time::Duration;

use maintenance_lease::{HeldState, Lost};
use supervisor::{Exit, Signal};

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A lease was renewed, or cut short from outside: its state now.
    StateChanged(&'a HeldState),
    /// A lease was lost: the command has to end, or had to.
    Lost(&'a Lost, Stage),
    /// Time may have passed that no clock counted: the command is stopped until its leases have been read.
    Paused,
    /// The leases are still held, and the command continues.
    Resumed,
    /// The command was stopped (Ctrl-Z), and this process stops with it: nothing is renewed until it
    /// is continued, and the command is ended after this time.
    Stopped(Duration),
    /// A signal was passed on to the command to end it, but the command is still running. Reported once.
    StillRunning {
        /// The signal.
        after: Signal,
        /// The command's process id, if it is known.
        pid: Option<u32>,
    },
    /// The command itself has ended.
    Exited(Exit),
    /// It left this many processes behind, which are being ended.
    Left(usize),
    /// A process that it started has left its process group, can't be ended on this system, and still runs.
    LeftGroup,
    /// Its supervisor was killed, or stopped for too long: everything is being ended.
    SupervisorLost,
    /// The system does not allow the command to be followed: everything is being ended.
    FollowFailed(&'a io::Error),
}

/// The stage of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It did not start, and won't.
    NotStarted,
    /// It is running.
    Running,
    /// It has ended.
    Ended,
    /// It has ended because its time was over.
    OutOfTime,
}
