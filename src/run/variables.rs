//! The environment variables about locks, for a command that runs under them.

use maintenance_lease::protocol::{LockId, identity};
use maintenance_lease::{HeldLease, NodeLease};
use supervisor::Command;

use crate::args::lock_ids;

/// The nodes, separated by spaces.
const NODES: &str = "MAINT_NODES";
/// The holder, in the form that `--holder` accepts.
pub(crate) const HOLDER: &str = "MAINT_HOLDER";
// Set only for a single node, like its name.
const LEASE_UID: &str = "MAINT_LEASE_UID";
const FENCING_TOKEN: &str = "MAINT_FENCING_TOKEN";
const TRANSITIONS: &str = "MAINT_TRANSITIONS";

/// The values of the variables; `None` if unknown or not applicable.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    pub(crate) nodes: String,
    /// As in the Lease.
    pub(crate) holder: Option<String>,
    pub(crate) lock_id: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) lease_uid: Option<String>,
    /// The fencing number of an acquisition by this command.
    pub(crate) fencing: Option<u64>,
    pub(crate) transitions: Option<u32>,
}

impl Variables {
    /// Sets them, and removes inherited ones, for example those of an outer `with`.
    pub(crate) fn set_all(self, command: Command) -> Command {
        let holder = self.holder.as_deref().map(identity::person);
        [
            (NODES, Some(self.nodes)),
            (HOLDER, holder.map(ToOwned::to_owned)),
            (lock_ids::DEPRECATED, self.lock_id.clone()),
            (lock_ids::VARIABLE, self.lock_id),
            (lock_ids::NODE, self.node),
            (LEASE_UID, self.lease_uid),
            (FENCING_TOKEN, self.fencing.map(|it| it.to_string())),
            (TRANSITIONS, self.transitions.map(|it| it.to_string())),
        ]
        .into_iter()
        .fold(command, set)
    }
}

/// Whether `lease` is held, or on hold, by `outer`, the holder in the environment.
pub(crate) fn is_held_by(lease: &NodeLease, outer: Option<&str>) -> bool {
    let holder = lease.holder().map(identity::person);
    holder.is_some() && holder == outer
}

/// Sets a variable, or removes it.
pub(crate) fn set(command: Command, (name, value): (&str, Option<String>)) -> Command {
    match value {
        Some(value) => command.env(name, value),
        None => command.env_remove(name),
    }
}

/// Passes the locks in `held` on to `command`. Inherited values are never passed on. A fencing number can't
/// be read from the Lease, and the environment does not say which acquisition it belongs to. So a lock that
/// the caller already held has none.
pub(crate) fn set_all(command: Command, held: &[HeldLease]) -> Command {
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
