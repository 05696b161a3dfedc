//! What differs between operating systems. All system-dependent code of the plugin is here.

/// Whether a command that stands still with `with` is ended at its deadline all the same.
pub(crate) const ENDS_STOPPED_COMMANDS: bool = cfg!(target_os = "linux");

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    TerminalModes, account, discard_typed, hung_up, interrupted, is_executable, quit, terminated,
};
#[cfg(windows)]
pub(crate) use windows::{
    TerminalModes, account, discard_typed, hung_up, interrupted, is_executable, quit, terminated,
};
