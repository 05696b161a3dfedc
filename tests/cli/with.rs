//! `with`: a command on this machine, while nodes are locked.

mod clocks;
mod codes;
mod command;
mod ending;
mod external_changes;
mod locking;
mod loss;
mod terminal;

use crate::support::{Cluster, Maint, Running};

/// A lease that is lost nine seconds after its last renewal. The next one is due after four, so that a machine
/// that stands still for seconds keeps neither the command from its start nor a failure from being seen.
pub(crate) const SHORT: [&str; 6] = [
    "--request-timeout",
    "5s",
    "--grace",
    "1s",
    "--lease-duration",
    "11s",
];

/// Runs a shell script under the lock of `nodes`.
fn with(cluster: &Cluster, nodes: &[String], script: &str) -> Maint {
    let command = ["--", "/bin/sh", "-c", script];
    cluster.maint(["with"]).args(nodes).args(command)
}

/// Starts a command, and comes back when it has said that it is at work.
#[track_caller]
fn at_work(with: Maint) -> Running {
    let mut running = with.start();
    assert_eq!(running.line(), "at work");
    running
}

/// The same, with a lease so short that a loss comes soon.
fn briefly(cluster: &Cluster, node: &str, script: &str) -> Maint {
    let line = ["with", node].into_iter().chain(SHORT);
    cluster.maint(line).args(["--", "/bin/sh", "-c", script])
}
