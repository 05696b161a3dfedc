//! The hook of a verb that fences, as typed.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::duration;

/// A program that is run on this machine, and how.
#[derive(Args, Debug)]
pub(crate) struct HookArgs {
    /// End HOOK after this long
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        allow_hyphen_values = true,
        value_parser = duration::length
    )]
    pub(crate) hook_timeout: Duration,

    /// Run HOOK again now: you know that an interrupted run of it has ended
    ///
    /// After a crash, HOOK may still be running. Without --resume, it is not run again until the
    /// --hook-timeout of that run is over.
    #[arg(long)]
    pub(crate) resume: bool,

    /// Program to run on this machine, and its arguments
    #[arg(last = true, value_name = "HOOK")]
    pub(crate) hook: Vec<OsString>,
}
