//! What differs between operating systems. All system-dependent code of the plugin is here.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use elsewhere::{
    PipeReader, account, discard_typed, hung_up, interrupted, is_executable, quit, terminated,
};
#[cfg(unix)]
pub(crate) use unix::{
    PipeReader, account, discard_typed, hung_up, interrupted, is_executable, quit, terminated,
};
