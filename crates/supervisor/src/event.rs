//! The events that a caller receives about its command.

use crate::{Exit, Signal};

/// Something that happened to the command. [`Event::Ended`] is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The command was stopped. Call [`Running::suspend`](crate::Running::suspend), which handles the stop.
    Stopped(Signal),
    /// The time limit passed before a renewal. The command and all its descendants were asked to end at the
    /// first limit, or killed at the second.
    OutOfTime,
    /// Every process that can be stopped is stopped, as requested with
    /// [`Running::freeze`](crate::Running::freeze).
    Frozen,
    /// The stopped processes continue.
    Thawed,
    /// The command itself has ended; its descendants may still run.
    Exited(Exit),
    /// The command has ended and left this many processes behind. They have been asked to end, and will be
    /// killed after the grace period. On macOS, this is 1 for any number.
    Left(usize),
    /// The supervisor was killed, or did not act by the deadline. Its command dies with it, and this process
    /// ends the rest.
    SupervisorLost,
    /// The command and all its descendants have ended. [`Event::Exited`] is missing in three cases: the
    /// command itself can't be killed, the supervisor was lost before it reported the start, or
    /// [`reap_orphans`](crate::reap_orphans) has waited for the command.
    Ended {
        /// The number of processes that may still run. They belong to another user (as with `sudo`), so we may
        /// not signal them, or they hang in the kernel. If `/proc` hides the processes of others, they can't be
        /// counted and count as one. Zero means that no process of the command runs any more.
        unkillable: usize,
    },
}
