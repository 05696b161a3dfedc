//! The events that a caller gets about its command.

use serde::{Deserialize, Serialize};

use crate::{Exit, Signal};

/// Something that happened to the command. [`Event::Over`] is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The command was stopped. Call [`Running::suspend`](crate::Running::suspend), which does
    /// what is fit.
    Stopped(Signal),
    /// The command goes on after a stop.
    Continued,
    /// The time was over before a renewal came: the command and all that came of it were asked to
    /// end at the first limit, or killed at the second.
    OutOfTime,
    /// Everything that can be stopped stands still, as [`Running::freeze`](crate::Running::freeze)
    /// asked for.
    Frozen,
    /// What stood still goes on.
    Thawed,
    /// The command itself has ended; what it started may still run.
    Exited(Exit),
    /// The command has ended and left this many processes behind. They have been asked to end and
    /// will be killed after the grace.
    Left(usize),
    /// The supervisor was killed, or didn't act by the deadline. Its command dies with it, and this
    /// process ends the rest.
    SupervisorLost,
    /// The command and all its descendants have ended. [`Event::Exited`] is missing if the command itself
    /// can't be killed, or if the supervisor was lost and [`reap_orphans`](crate::reap_orphans) has
    /// waited for the command.
    Over(Over),
}

/// What it took to end everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Over {
    /// How many processes had to be killed.
    pub killed: usize,
    /// How many may still run: another user's (as those of `sudo`), which we may not signal, or
    /// ones that hang in the kernel. Where `/proc` hides others' processes they can't be counted
    /// and stand for one, beside none that is seen. Zero means that nothing of the command runs any more.
    pub unkillable: usize,
}
