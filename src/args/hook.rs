//! The hook of a verb that fences, as typed.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::duration;

/// A program that is run on this machine, and how.
#[derive(Args, Debug)]
pub(crate) struct HookArgs {
    /// How long HOOK may take
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        allow_hyphen_values = true,
        value_parser = duration::length
    )]
    pub(crate) hook_timeout: Duration,

    /// An earlier run was broken off: its HOOK, which may take some time yet, runs no more
    #[arg(long)]
    pub(crate) resume: bool,

    /// The program that is run, and its arguments
    #[arg(last = true, value_name = "HOOK")]
    pub(crate) hook: Vec<OsString>,
}
