//! What differs between operating systems. All system-dependent code of the plugin is here.

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
