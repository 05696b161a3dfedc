//! Whether to lock a node that somebody else may be working on.

use clap::Args;
use maintenance_lease::{Acquire, Hold, NodeLease};

/// The flags of the verbs that lock nodes which others may be working on.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TakeExpiredArgs {
    /// Take expired locks of NotReady or cordoned nodes
    ///
    /// The old holder may have stopped in the middle of something: check the node first. Without this flag, you
    /// are asked on a terminal. With --yes, or without a terminal, you are not asked, and the exit code is 6.
    #[arg(long)]
    pub(crate) take_expired: bool,

    /// Refuse nodes that other tools work on
    ///
    /// For example, cluster-autoscaler is deleting the node, kured is rebooting it, or it is cordoned, even if you
    /// cordoned it. If one node is refused, none is locked, also with --partial, and the exit code is 6. Without this flag,
    /// a warning shows what they do.
    /// docs/other-tools.md lists the tools.
    #[arg(long)]
    pub(crate) strict: bool,
}

impl TakeExpiredArgs {
    /// `options` for an acquisition that takes those in `confirmed`, or all.
    pub(crate) fn acquire(self, options: Acquire, confirmed: Vec<NodeLease>) -> Acquire {
        match self.take_expired {
            true => options,
            false => options.refuse_unfinished(confirmed),
        }
    }

    /// The same for a hold.
    pub(crate) fn hold(self, options: Hold, confirmed: Vec<NodeLease>) -> Hold {
        match self.take_expired {
            true => options,
            false => options.refuse_unfinished(confirmed),
        }
    }
}
