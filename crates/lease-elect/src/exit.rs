//! Exit codes, on which process supervisors depend. The exit code of the daemon is passed on, or 128 plus the
//! number of the signal that ended it. The code is 126 if the daemon can't be executed, and 127 if it does
//! not exist.

use supervisor::Exit;
use supervisor::under_lease::CommandOutcome;

/// An exit code of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    /// The process was asked to end while it waited to lead.
    pub(crate) const DONE: Self = Self(0);
    /// Leadership was lost while the daemon ran, regardless of the daemon's exit code. Start lease-elect
    /// again to make it a standby.
    pub(crate) const LOST: Self = Self(5);
    /// An error of lease-elect itself, including wrong usage.
    pub(crate) const FAILED: Self = Self(Exit::OF_WRAPPER);
    /// Ctrl-C was pressed while it waited to lead.
    pub(crate) const INTERRUPTED: Self = Self(130);

    /// The daemon's code, or `LOST` if leadership was lost.
    pub(crate) fn of_daemon(outcome: &CommandOutcome, is_lost: bool) -> Self {
        Self(outcome.code(is_lost, Self::LOST.0))
    }

    /// The code for the operating system.
    pub(crate) fn number(self) -> u8 {
        self.0
    }
}
