//! The variables that tell the command about its locks.

use maintenance_lease::protocol::LockId;
use maintenance_lease::{HeldLease, NodeLease};
use supervisor::Command;

use crate::run::variables::Variables;

/// Passes the locks in `held` on to `command`. Inherited values are never passed on. A fencing number can't
/// be read from the Lease, and the environment does not say which acquisition it belongs to. So a lock that
/// the caller already held has none.
pub(super) fn set_all(command: Command, held: &[HeldLease]) -> Command {
    let nodes: Vec<&str> = held.iter().map(HeldLease::node).collect();
    // If only some locks were acquired here, the holder is the one that acquired these.
    let ours = held.iter().find(|held| !held.was_found()).or(held.first());
    // A hold that was made by hand has no lock id.
    let ids: Vec<String> = held
        .iter()
        .filter_map(|held| Some(named(held, &held.lock_id()?, nodes.len())))
        .collect();
    let one = match held {
        [held] => Some(held),
        _ => None,
    };
    let lease = one.map(|held| held.held_state().lease);
    let variables = Variables {
        nodes: nodes.join(" "),
        holder: ours.and_then(|held| held.held_state().lease.holder().map(ToOwned::to_owned)),
        lock_id: (!ids.is_empty()).then(|| ids.join(" ")),
        node: one.map(|held| held.node().to_owned()),
        lease_uid: lease.as_ref().map(|lease| lease.uid().to_owned()),
        fencing: one.and_then(HeldLease::fencing),
        transitions: lease.as_ref().map(NodeLease::transitions),
    };
    variables.set_all(command)
}

fn named(held: &HeldLease, id: &LockId, nodes: usize) -> String {
    match nodes {
        1 => id.to_string(),
        _ => format!("{}={id}", held.node()),
    }
}
