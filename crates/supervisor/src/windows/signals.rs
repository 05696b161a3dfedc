//! The events that a user or Windows sends to this process and its command.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

use crate::Signal;

/// The events of the console: Ctrl-C (INT), Ctrl-Break (QUIT), closing the window (HUP), and the shutdown of
/// Windows (TERM).
///
/// The command receives them from the console itself. While a `Signals` exists, Ctrl-C and Ctrl-Break do not
/// end this process.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    quit: CtrlBreak,
    hang_up: CtrlClose,
    terminate: CtrlShutdown,
}

impl Signals {
    /// Starts to listen. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// If Windows refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            quit: ctrl_break()?,
            hang_up: ctrl_close()?,
            terminate: ctrl_shutdown()?,
        })
    }

    /// The next signal. Dropping the future loses no signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::INT,
            Some(()) = self.quit.recv() => Signal::QUIT,
            Some(()) = self.hang_up.recv() => Signal::HUP,
            Some(()) = self.terminate.recv() => Signal::TERM,
            else => std::future::pending().await,
        }
    }
}
