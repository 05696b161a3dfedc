//! Whether to wait for a lock that somebody else has, and for how long.

use std::time::Duration;

use clap::Args;

use super::duration;

/// Flags of the verbs that can wait for a lock.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WaitingArgs {
    /// Wait for the nodes to be unlocked
    ///
    /// Also waits for your own locks, because another command of yours may hold them. A dry run does not wait.
    #[arg(long)]
    pub(crate) wait: bool,

    /// Stop waiting after this long, with exit code 4 [default: no limit]
    ///
    /// For example 90s or 10m. 0 tries once.
    #[arg(
        long,
        value_name = "TIME",
        requires = "wait",
        value_parser = duration::length
    )]
    pub(crate) timeout: Option<Duration>,
}
