//! What differs between operating systems: all code of the plugin that asks which one this is.

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
