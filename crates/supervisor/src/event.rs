//! The events that a caller gets about its command.

use serde::{Deserialize, Serialize};

use crate::{Exit, Signal};

/// Something that happened to the command. [`Event::Ended`] is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The command was stopped. Call [`Running::suspend`](crate::Running::suspend), which does what is needed.
    Stopped(Signal),
    /// The command continues after a stop.
    Continued,
    /// The time limit passed before a renewal: the command and all its descendants were asked to end at the
    /// first limit, or killed at the second.
    OutOfTime,
    /// Every process that can be stopped is stopped, as requested with
    /// [`Running::freeze`](crate::Running::freeze).
    Frozen,
    /// The stopped processes continue.
    Thawed,
    /// The command itself has ended; its descendants may still run.
    Exited(Exit),
    /// The command has ended and left this many processes behind. They have been asked to end and
    /// will be killed after the grace.
    Left(usize),
    /// A process that the command started has left its process group and still runs. It counts as unkillable. Never on
    /// Linux, which ends it too, or on Windows, where nothing can leave a job object.
    LeftGroup,
    /// The supervisor was killed, or didn't act by the deadline. Its command dies with it, and this
    /// process ends the rest.
    SupervisorLost,
    /// The command and all its descendants have ended. [`Event::Exited`] is missing if the command itself
    /// can't be killed, or if the supervisor was lost before it reported the start, or
    /// [`reap_orphans`](crate::reap_orphans) has waited for the command.
    Ended(Ended),
}

/// What was necessary to end everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ended {
    /// How many processes had to be killed. Only counted on Linux.
    pub killed: usize,
    /// How many may still run: another user's (as with `sudo`), which we may not signal, or processes that hang
    /// in the kernel. If `/proc` hides the processes of others, they can't be counted and count as one. Zero
    /// means that nothing of the command runs any more.
    pub unkillable: usize,
}
