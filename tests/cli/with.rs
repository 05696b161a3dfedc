//! `with`: it runs a command on this machine while nodes are locked.

mod clocks;
mod codes;
mod command;
mod ending;
mod external_changes;
mod locking;
mod loss;
mod terminal;

use crate::support::{Cluster, Maint, Running};

/// A lock that counts as lost 9 s after its last renewal. The next renewal is due after 4 s. So a machine that stalls
/// for some seconds neither keeps the command from starting nor hides a failed renewal.
pub(crate) const SHORT: [&str; 6] = [
    "--request-timeout",
    "5s",
    "--grace",
    "1s",
    "--lease-duration",
    "11s",
];

/// Runs a shell script under the locks of `nodes`.
fn with(cluster: &Cluster, nodes: &[String], script: &str) -> Maint {
    let command = ["--", "/bin/sh", "-c", script];
    cluster.maint(["with"]).args(nodes).args(command)
}

/// Starts a command and waits until it prints that it is at work.
#[track_caller]
fn at_work(with: Maint) -> Running {
    let mut running = with.start();
    assert_eq!(running.line(), "at work");
    running
}

/// Runs a shell script under a lock so short that a loss comes soon.
fn briefly(cluster: &Cluster, node: &str, script: &str) -> Maint {
    let line = ["with", node].into_iter().chain(SHORT);
    cluster.maint(line).args(["--", "/bin/sh", "-c", script])
}
