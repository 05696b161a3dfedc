//! macOS and Windows: the command runs in a process group or a job object, and this process enforces its
//! limits.

mod running;
#[cfg(test)]
mod tests;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::StartError;

#[cfg(not(target_os = "linux"))]
pub use running::Running;
#[cfg(windows)]
pub(crate) use system::signal_numbers;
#[cfg(windows)]
pub use system::{Signals, termination};

/// Always `None`: these systems have no supervisor process.
pub fn entry(_arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    None
}

/// Checks whether commands can be run here.
///
/// # Errors
///
/// None on these systems.
pub fn check() -> Result<(), StartError> {
    Ok(())
}

/// Does nothing on these systems: `child` and its descendants continue.
pub fn kill_tree(_child: u32) {}
