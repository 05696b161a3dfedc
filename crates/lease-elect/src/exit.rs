//! Exit codes, which supervisors depend on. A daemon's own code is passed on, or 128 and the number of the
//! signal that ended it; 126 if it can't be run, and 127 if there is no such program.

use supervisor::Exit;
use under_lease::CommandOutcome;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    /// It was asked to end while it waited to lead.
    pub(crate) const DONE: Self = Self(0);
    /// The lead was lost while the daemon ran, whatever its own code: start it again, as a standby.
    pub(crate) const LOST: Self = Self(5);
    /// A failure of lease-elect itself, including wrong usage.
    pub(crate) const FAILED: Self = Self(Exit::OF_WRAPPER);
    /// Ctrl-C while it waited to lead.
    pub(crate) const INTERRUPTED: Self = Self(130);

    /// The daemon's, unless lost leadership.
    pub(crate) fn of_daemon(outcome: &CommandOutcome, is_lost: bool) -> Self {
        Self(outcome.code(is_lost, Self::LOST.0))
    }

    /// The code for the system.
    pub(crate) fn number(self) -> u8 {
        self.0
    }
}
