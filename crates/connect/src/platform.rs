//! What differs between operating systems: the modes of the terminal, which a credential plugin may
//! change, and whether kubectl's rules for Windows apply.
//!
//! Gap in kube: it never ends a plugin, so it never restores the terminal's modes.

/// Whether kubectl's rules for Windows apply.
pub(crate) const IS_WINDOWS: bool = cfg!(windows);

#[cfg(not(unix))]
pub(crate) use elsewhere::TerminalModes;
#[cfg(unix)]
pub(crate) use unix::TerminalModes;

#[cfg(unix)]
mod unix {
    use std::io;

    use rustix::process::getpgrp;
    use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

    /// How the terminal on stdin is set, such as whether it shows what is typed.
    pub(crate) struct TerminalModes(Termios);

    impl TerminalModes {
        /// Those of this moment; `None` where stdin is no terminal.
        pub(crate) fn of_stdin() -> Option<Self> {
            tcgetattr(io::stdin()).ok().map(Self)
        }

        /// Sets them again.
        pub(crate) fn restore(&self) {
            let stdin = io::stdin();
            // A process in the background would be stopped by that.
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

    /// Not known here.
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
