//! The other items that `linux/` also has: the signals of this process, and stubs for what only Linux
//! supports.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use crate::listeners::Listeners;
use crate::unix::ignored::Ignored;
use crate::{Signal, StartError};

/// Always `None`: this system has no supervisor process.
pub fn entry(_arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    None
}

/// Checks whether commands can be run here.
///
/// # Errors
///
/// None on this system.
pub fn check() -> Result<(), StartError> {
    Ok(())
}

/// The signals that a user sends to this process and that are also meant for its command: INT, TERM, HUP,
/// QUIT, USR1, USR2, TSTP and CONT.
///
/// HUP stays ignored if this process ignored it when it was started, for example because of `nohup`. Once a
/// `Signals` was created, none of the other signals has its default effect on this process any more, even
/// after it is dropped.
#[derive(Debug)]
pub struct Signals(Listeners);

impl Signals {
    /// Starts to listen. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn new() -> io::Result<Self> {
        let ignored = Ignored::now()?;
        Listeners::new(|signal| ignored.has(signal)).map(Self)
    }

    /// The next signal. Dropping the future loses no signal.
    pub async fn next(&mut self) -> Signal {
        self.0.next().await
    }
}
