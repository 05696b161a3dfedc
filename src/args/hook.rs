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
        value_parser = duration::length
    )]
    pub(crate) hook_timeout: Duration,

    /// Confirm that this run has ended; run HOOK now
    ///
    /// After a crash, the HOOK of that run may still be running. Without --resume, HOOK is not run again until the
    /// --hook-timeout of that run and 14 more seconds have passed. The error prints the ID.
    #[arg(long, value_name = "ID", require_equals = true)]
    pub(crate) resume: Option<String>,

    /// Program to run on this machine, and its arguments
    #[arg(index = 2, last = true, value_name = "HOOK")]
    pub(crate) hook: Vec<OsString>,
}
