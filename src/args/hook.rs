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

    /// Run HOOK now, although the run with this ID was recorded: you know that it has ended
    ///
    /// After a crash, HOOK may still be running. Without --resume, it is not run again until the
    /// --hook-timeout of that run is over. The message that refuses it prints the ID.
    #[arg(long, value_name = "ID", require_equals = true)]
    pub(crate) resume: Option<String>,

    /// Program to run on this machine, and its arguments
    #[arg(last = true, value_name = "HOOK")]
    pub(crate) hook: Vec<OsString>,
}
