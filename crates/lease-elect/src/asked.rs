//! Signals while it stands by: there is no daemon yet to pass them on to.

use std::io::{self, IsTerminal as _};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Code;

/// Listens for being asked to end. As the first process of a container it would not be ended
/// otherwise.
pub(crate) struct Asked {
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    /// With a terminal: that is gone. Else, as USR1 and USR2, it is something for a daemon, such as
    /// to read its configuration again.
    hang_up: Signal,
    has_terminal: bool,
    _for_the_daemon: [Signal; 2],
}

impl Asked {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the system refuses.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            has_terminal: io::stdin().is_terminal(),
            _for_the_daemon: [
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
            ],
        })
    }

    /// Completes once it is asked to end, with the code to end with. Dropping the future loses
    /// nothing.
    pub(crate) async fn heard(&mut self) -> Code {
        loop {
            tokio::select! {
                biased;
                _ = self.terminate.recv() => return Code::DONE,
                _ = self.interrupt.recv() => return Code::INTERRUPTED,
                _ = self.quit.recv() => return Code::INTERRUPTED,
                _ = self.hang_up.recv() => {
                    if self.has_terminal {
                        return Code::INTERRUPTED;
                    }
                }
            }
        }
    }
}
