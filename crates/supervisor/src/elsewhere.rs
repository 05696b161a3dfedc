//! Systems other than Linux: the same names, but nothing can be started.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use crate::{Command, Event, Limits, Signal, StartError, Unsupported};

const UNSUPPORTED: Unsupported = Unsupported {
    what: "running a command under a lock",
};

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, UNSUPPORTED)
}

/// Whether this system supports `what`, which needs a supervised command.
///
/// # Errors
///
/// Always, with `what` in the message.
pub fn supports(what: &'static str) -> Result<(), Unsupported> {
    Err(Unsupported { what })
}

/// Not a supervisor: there is none on this system.
pub fn entry(_arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    None
}

/// Whether commands can be run here.
///
/// # Errors
///
/// Always: [`StartError::Unsupported`].
pub fn check() -> Result<(), StartError> {
    Err(UNSUPPORTED.into())
}

/// There is nothing to reap on this system.
///
/// # Errors
///
/// None.
pub async fn reap_orphans() -> io::Result<Infallible> {
    std::future::pending().await
}

/// Does nothing: descendants of a process can't be found on this system.
pub fn kill_tree(_child: u32) {}

/// Not possible on this system.
pub fn end_by(_signal: Signal) -> io::Error {
    unsupported()
}

impl Command {
    /// Does not start the command: that is not possible on this system.
    ///
    /// # Errors
    ///
    /// Always; [`StartError::Unsupported`] if there is a command.
    pub async fn start(self, _limits: Limits) -> Result<Running, StartError> {
        if self.argv.is_empty() {
            return Err(StartError::NoCommand);
        }
        Err(UNSUPPORTED.into())
    }
}

/// A running command: there is none on this system.
#[derive(Debug)]
pub struct Running(Infallible);

impl Running {
    /// The command's process id, if it is known.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match self.0 {}
    }

    /// Sets new limits.
    pub fn limits(&mut self, _limits: Limits) {
        match self.0 {}
    }

    /// Ends everything.
    pub fn end(&mut self, _limits: Limits) {
        match self.0 {}
    }

    /// Passes a signal on.
    pub fn signal(&mut self, _signal: Signal) {
        match self.0 {}
    }

    /// Stops this process with its command.
    pub fn suspend(&mut self) -> bool {
        match self.0 {}
    }

    /// Whether [`Running::suspend`] would stop this process now.
    #[must_use]
    pub fn suspends(&self) -> bool {
        match self.0 {}
    }

    /// Stops everything for a while.
    pub fn freeze(&mut self) {
        match self.0 {}
    }

    /// Continues everything.
    pub fn thaw(&mut self) {
        match self.0 {}
    }

    /// The next event.
    pub async fn next(&mut self) -> io::Result<Event> {
        match self.0 {}
    }
}

/// The signals that this process ignores: unknown on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored(Infallible);

impl Ignored {
    /// Those of this moment.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn now() -> io::Result<Self> {
        Err(unsupported())
    }

    /// Whether `signal` is one of them.
    #[must_use]
    pub fn has(self, _signal: Signal) -> bool {
        match self.0 {}
    }
}

/// The signals to pass on: there are none on this system.
#[derive(Debug)]
pub struct Signals(Infallible);

impl Signals {
    /// Listens.
    ///
    /// # Errors
    ///
    /// Always: this needs Linux.
    pub fn new() -> io::Result<Self> {
        Err(unsupported())
    }

    /// The next signal.
    pub async fn next(&mut self) -> Signal {
        match self.0 {}
    }
}
