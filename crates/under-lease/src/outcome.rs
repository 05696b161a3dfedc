//! How a command ended.

use supervisor::{Ended, Exit};

/// How a command under leases ended.
#[derive(Debug)]
pub struct CommandOutcome {
    /// How the command itself ended, if known.
    pub exit: Option<Exit>,
    /// The names of the leases that were lost in the meantime. These losses were reported.
    pub lost: Vec<String>,
    /// What was necessary to end everything; `None` if it is not known whether all has ended.
    pub over: Option<Ended>,
}

impl CommandOutcome {
    /// The outcome of a command that was not run.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            exit: None,
            lost: Vec::new(),
            over: Some(Ended::default()),
        }
    }

    /// Whether a lease was lost while the command ran.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether nothing of the command runs any more: only then a lease may be released.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.is_some_and(|over| over.unkillable == 0)
    }

    /// The exit code: that of the command, or `lost` if a lease was lost, because the command may then have
    /// worked without it. [`Exit::OF_WRAPPER`] if it is unknown.
    #[must_use]
    pub fn code(&self, is_lost: bool, lost: u8) -> u8 {
        match self.exit {
            _ if is_lost => lost,
            Some(exit) => exit.code(),
            None => Exit::OF_WRAPPER,
        }
    }
}
