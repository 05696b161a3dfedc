//! The environment variables about locks, for a command that runs under them.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;
use supervisor::Command;

use crate::args::lock_id;

/// The nodes, separated by spaces.
const NODES: &str = "MAINT_NODES";
/// The holder, in the form that `--holder` accepts.
pub(crate) const HOLDER: &str = "MAINT_HOLDER";
// Set only for a single node, like its name.
const LEASE_UID: &str = "MAINT_LEASE_UID";
const FENCING_NUMBER: &str = "MAINT_FENCING_NUMBER";
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
        let fencing = self.fencing.map(|it| it.to_string());
        let holder = self.holder.as_deref().map(identity::person);
        [
            (NODES, Some(self.nodes)),
            (HOLDER, holder.map(ToOwned::to_owned)),
            (lock_id::VARIABLE, self.lock_id),
            (lock_id::NODE, self.node),
            (LEASE_UID, self.lease_uid),
            (FENCING_NUMBER, fencing),
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
