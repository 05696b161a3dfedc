//! Converts the wait status of a child.

use rustix::process::WaitStatus;

use crate::{Exit, Signal};

impl Exit {
    /// How the child ended.
    pub(crate) fn of(status: WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signal(Signal(signal)),
            None => {
                let code = status.exit_status().unwrap_or_default();
                Self::Code(u8::try_from(code).unwrap_or(u8::MAX))
            }
        }
    }
}
