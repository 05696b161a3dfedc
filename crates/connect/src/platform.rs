//! The differences between operating systems: terminal modes, which a credential plugin may change, its process group,
//! and whether kubectl's rules for Windows apply.
//!
//! Gap in kube: it never ends a plugin, so it never restores the terminal's modes.

/// Whether kubectl's rules for Windows apply.
pub(crate) const IS_WINDOWS: bool = cfg!(windows);

#[cfg(not(unix))]
pub(crate) use elsewhere::{TerminalModes, start_own_group};
#[cfg(unix)]
pub(crate) use unix::{TerminalModes, start_own_group};

#[cfg(unix)]
mod unix {
    use std::io;

    use rustix::process::getpgrp;
    use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
    use tokio::process::Command;

    /// The process will lead a process group of its own.
    pub(crate) fn start_own_group(command: &mut Command) {
        command.process_group(0);
    }

    /// The modes of the terminal at stdin, such as whether it shows typed characters.
    pub(crate) struct TerminalModes(Termios);

    impl TerminalModes {
        /// The current modes; `None` if stdin is not a terminal.
        pub(crate) fn of_stdin() -> Option<Self> {
            tcgetattr(io::stdin()).ok().map(Self)
        }

        /// Sets these modes again.
        pub(crate) fn restore(&self) {
            let stdin = io::stdin();
            // This would stop a process in the background.
            if tcgetpgrp(&stdin).is_ok_and(|foreground| foreground == getpgrp()) {
                // The terminal may be gone.
                let _ = tcsetattr(&stdin, OptionalActions::Now, &self.0);
            }
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::convert::Infallible;

    use tokio::process::Command;

    /// This system has no process groups that a terminal stops.
    pub(crate) fn start_own_group(_: &mut Command) {}

    /// Terminal modes are not supported on this system.
    pub(crate) struct TerminalModes(Infallible);

    impl TerminalModes {
        pub(crate) fn of_stdin() -> Option<Self> {
            None
        }

        pub(crate) fn restore(&self) {
            match self.0 {}
        }
    }
}
