//! What a command is told of the locks that it runs under.

use maintenance_lease::protocol::{LockId, identity};
use maintenance_lease::{HeldLease, NodeLease};
use supervisor::Command;

/// The nodes, separated by spaces.
const NODES: &str = "MAINT_NODES";
/// Who holds them, as `--holder` takes it.
pub(crate) const HOLDER: &str = "MAINT_HOLDER";
/// The lock id, or NODE=ID of each if there are several.
pub(crate) const LOCK_ID: &str = "MAINT_LOCK_ID";
/// Its earlier name.
const TOKEN: &str = "MAINT_TOKEN";
/// The node, where it is one; and of its Lease:
const NODE: &str = "MAINT_NODE";
const LEASE_UID: &str = "MAINT_LEASE_UID";
const FENCING_TOKEN: &str = "MAINT_FENCING_TOKEN";
const TRANSITIONS: &str = "MAINT_TRANSITIONS";

/// The values of the variables; of those that are not known or don't apply, none.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    pub(crate) nodes: String,
    /// As it stands in the Lease.
    pub(crate) holder: Option<String>,
    pub(crate) lock_id: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) lease_uid: Option<String>,
    /// The number of an acquisition of one's own.
    pub(crate) fencing: Option<u64>,
    pub(crate) transitions: Option<u32>,
}

impl Variables {
    /// Sets them, and takes away what may have been inherited of them, from an outer `with` say.
    pub(crate) fn tell(self, command: Command) -> Command {
        let holder = self.holder.as_deref().map(identity::person);
        [
            (NODES, Some(self.nodes)),
            (HOLDER, holder.map(ToOwned::to_owned)),
            (TOKEN, self.lock_id.clone()),
            (LOCK_ID, self.lock_id),
            (NODE, self.node),
            (LEASE_UID, self.lease_uid),
            (FENCING_TOKEN, self.fencing.map(|it| it.to_string())),
            (TRANSITIONS, self.transitions.map(|it| it.to_string())),
        ]
        .into_iter()
        .fold(command, set)
    }
}

/// Whether `lease` is held, or on hold, by whom the environment names: `outer`.
pub(crate) fn is_held_by(lease: &NodeLease, outer: Option<&str>) -> bool {
    let holder = lease.holder().map(identity::person);
    holder.is_some() && holder == outer
}

/// Sets a variable, or takes it away.
pub(crate) fn set(command: Command, (name, value): (&str, Option<String>)) -> Command {
    match value {
        Some(value) => command.env(name, value),
        None => command.env_remove(name),
    }
}

/// Tells `command` of the locks that are `held`. Inherited values never win: a fencing number can't be
/// read again, and nothing in the environment says which acquisition it is of, so that a lock that is
/// entered again comes without one.
pub(crate) fn tell(command: Command, held: &[HeldLease]) -> Command {
    let nodes: Vec<&str> = held.iter().map(HeldLease::node).collect();
    // Of a lock that was found and others that were not, the holder is who took the others.
    let ours = held.iter().find(|held| !held.was_found()).or(held.first());
    // A hold that was made by hand has none.
    let ids: Vec<String> = held
        .iter()
        .filter_map(|held| Some(named(held, &held.lock_id()?, nodes.len())))
        .collect();
    let one = match held {
        [held] => Some(held),
        _ => None,
    };
    let lease = one.map(|held| held.standing().lease);
    let variables = Variables {
        nodes: nodes.join(" "),
        holder: ours.and_then(|held| held.standing().lease.holder().map(ToOwned::to_owned)),
        lock_id: (!ids.is_empty()).then(|| ids.join(" ")),
        node: one.map(|held| held.node().to_owned()),
        lease_uid: lease.as_ref().map(|lease| lease.uid().to_owned()),
        fencing: one.and_then(HeldLease::fencing),
        transitions: lease.as_ref().map(NodeLease::transitions),
    };
    variables.tell(command)
}

fn named(held: &HeldLease, id: &LockId, nodes: usize) -> String {
    match nodes {
        1 => id.to_string(),
        _ => format!("{}={id}", held.node()),
    }
}
