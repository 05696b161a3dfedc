//! Whether to wait for a lock that somebody else has, and for how long.

use std::time::Duration;

use clap::Args;

use super::duration;

/// Flags of the verbs that can wait for a lock.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PatienceArgs {
    /// Wait for nodes that somebody else has, as long as it takes, once a first answer showed them
    #[arg(long)]
    pub(crate) wait: bool,

    /// Wait no longer than this, such as 90s or 10m; exit code 4 then. 0 tries once, a negative time
    /// is a week
    #[arg(
        long,
        value_name = "TIME",
        requires = "wait",
        allow_hyphen_values = true,
        value_parser = duration::timeout
    )]
    pub(crate) timeout: Option<Duration>,
}

/// How long to wait; `None`: as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience(pub(crate) Option<Duration>);

impl PatienceArgs {
    /// How long to wait, where waiting is wanted.
    pub(crate) fn patience(self) -> Option<Patience> {
        self.wait.then_some(Patience(self.timeout))
    }
}
