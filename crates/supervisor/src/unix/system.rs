//! The rest of what `linux/` offers: the signals of this process, and what only Linux can do.

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

/// Whether commands can be run here.
///
/// # Errors
///
/// None on this system.
pub fn check() -> Result<(), StartError> {
    Ok(())
}

/// The signals that a user sends to this process and means for its command too: INT, TERM, HUP, QUIT, USR1,
/// USR2, TSTP and CONT.
///
/// HUP stays ignored if this process was started to ignore it, as by `nohup`. After the first `Signals`, none of the
/// others has its default effect on this process any more, even after this is dropped.
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

    /// The next signal. Dropping the future loses none.
    pub async fn next(&mut self) -> Signal {
        self.0.next().await
    }
}
