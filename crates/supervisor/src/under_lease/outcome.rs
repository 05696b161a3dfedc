//! The outcome of a command.

use crate::Exit;

/// The outcome of a command that ran under leases.
#[derive(Debug)]
pub struct CommandOutcome {
    /// How the command itself ended, if known.
    pub exit: Option<Exit>,
    /// The names of the leases that were lost in the meantime. These losses were already reported.
    pub lost: Vec<String>,
    /// The number of processes that may still run; `None` if it is unknown.
    pub left: Option<usize>,
}

impl CommandOutcome {
    /// The outcome of a command that was not run.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            exit: None,
            lost: Vec::new(),
            left: Some(0),
        }
    }

    /// Whether a lease was lost while the command ran.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether no process of the command runs any more. Only then may a lease be released.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// The exit code of the command, or `lost` if `is_lost`, because the command may then have worked without
    /// a lease. [`Exit::OF_WRAPPER`] if it is unknown.
    #[must_use]
    pub fn code(&self, is_lost: bool, lost: u8) -> u8 {
        match self.exit {
            _ if is_lost => lost,
            Some(exit) => exit.code(),
            None => Exit::OF_WRAPPER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test can make processes that the system does not end.
    #[test]
    fn only_without_processes_is_it_over() {
        let over = CommandOutcome::nothing();
        assert!(over.is_over());
        for left in [Some(1), None] {
            let outcome = CommandOutcome {
                left,
                ..CommandOutcome::nothing()
            };
            assert!(!outcome.is_over(), "{outcome:?}");
        }
    }
}
