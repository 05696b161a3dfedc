//! The medik8s Lease of a Node, which a lock holds, in words.

use maintenance_lease::MEDIK8S_LEASES;

use super::hint_command::Program;
use crate::text::escape;

/// What a lock holds.
pub(crate) const LEASE: &str = "its medik8s Lease";

/// The lock holds the Lease now.
pub(crate) fn held(node: &str, is_hold: bool) -> String {
    let lock = if is_hold { "hold" } else { "lock" };
    format!("node/{node}: its medik8s Lease is held until the {lock} ends")
}

/// Somebody else has it.
pub(crate) fn busy(holder: &str) -> String {
    match holder {
        "" => "its Lease is taken, but does not say by whom".to_owned(),
        holder => format!("{} holds its Lease", escape(holder)),
    }
}

/// The namespace of the Leases does not exist.
pub(crate) fn no_namespace() -> String {
    format!("there is no namespace {MEDIK8S_LEASES}; is medik8s installed?")
}

/// The Lease stays after the lock, and the next command.
pub(crate) fn left(node: &str, cause: &str, program: &Program) -> (String, String) {
    (
        format!("node/{node}: its medik8s Lease stays, and keeps medik8s off the node: {cause}"),
        format!(
            "to delete it, with the rights to: `{}`",
            program.run(format!("unhold {node}"))
        ),
    )
}
