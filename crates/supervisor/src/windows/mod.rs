//! Windows: the command runs in a job object, and this process enforces its limits.
//!
//! When this process ends for any reason, Windows kills the job object and all processes in it. Windows
//! cannot ask a process to end, or stop it for a while.

mod processes;
mod program;
mod running;
pub(crate) mod signal_numbers;
mod signals;
mod start;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::StartError;

pub use self::program::find_program;
pub use self::running::Running;
pub use self::signals::Signals;

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

/// Does nothing on this system: `child` and its descendants continue.
pub fn kill_tree(_child: u32) {}
