//! What a command is told of the locks that it runs under.

use maintenance_lease::HeldLease;
use maintenance_lease::protocol::Token;
use supervisor::Command;

/// The nodes, separated by spaces.
pub(crate) const NODES: &str = "MAINT_NODES";
/// Who holds them.
pub(crate) const HOLDER: &str = "MAINT_HOLDER";
/// The acquisition, or NODE=TOKEN of each where there are several.
pub(crate) const TOKEN: &str = "MAINT_TOKEN";
/// The node, where it is one; and of its Lease:
pub(crate) const NODE: &str = "MAINT_NODE";
pub(crate) const LEASE_UID: &str = "MAINT_LEASE_UID";
pub(crate) const FENCING_TOKEN: &str = "MAINT_FENCING_TOKEN";
pub(crate) const TRANSITIONS: &str = "MAINT_TRANSITIONS";

/// Sets the variables, and takes away what an outer `with` may have set of them. Inherited values never
/// win: a fencing number can't be read again, and nothing in the environment says which acquisition
/// it is of, so that a lock that is entered again comes without one.
pub(super) fn tell(command: Command, held: &[HeldLease]) -> Command {
    let nodes: Vec<&str> = held.iter().map(HeldLease::node).collect();
    // Of a lock that was found and others that were not, the holder is who took the others.
    let ours = held.iter().find(|held| !held.was_found()).or(held.first());
    let holder = ours.and_then(|held| held.standing().lease.holder().map(ToOwned::to_owned));
    // A hold that was made by hand has none.
    let tokens: Vec<String> = held
        .iter()
        .filter_map(|held| Some(named(held, &held.token()?, nodes.len())))
        .collect();
    let set = |command, name, value: Option<String>| match value {
        Some(value) => Command::env(command, name, value),
        None => Command::env_remove(command, name),
    };
    let of_one = |value: fn(&HeldLease) -> String| match held {
        [held] => Some(value(held)),
        _ => None,
    };
    let command = set(command, NODES, Some(nodes.join(" ")));
    let command = set(command, HOLDER, holder);
    let command = set(
        command,
        TOKEN,
        (!tokens.is_empty()).then(|| tokens.join(" ")),
    );
    let command = set(command, NODE, of_one(|held| held.node().to_owned()));
    let command = set(
        command,
        LEASE_UID,
        of_one(|held| held.standing().lease.uid().to_owned()),
    );
    let fencing = match held {
        [held] => held.fencing(),
        _ => None,
    };
    let command = set(
        command,
        FENCING_TOKEN,
        fencing.map(|fencing| fencing.to_string()),
    );
    set(
        command,
        TRANSITIONS,
        of_one(|held| held.standing().lease.transitions().to_string()),
    )
}

fn named(held: &HeldLease, token: &Token, nodes: usize) -> String {
    match nodes {
        1 => token.to_string(),
        _ => format!("{}={token}", held.node()),
    }
}
