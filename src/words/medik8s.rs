//! The medik8s Lease of a Node, which a lock holds, in words.

use other_tools::WriteError;

use super::hint_command::Program;
use super::protection::cause;

/// What a lock holds.
pub(crate) const LEASE: &str = "its medik8s Lease";

/// The lock holds the Lease now.
pub(crate) fn held(node: &str, is_hold: bool) -> String {
    let lock = if is_hold { "hold" } else { "lock" };
    format!("node/{node}: its medik8s Lease is held until the {lock} ends")
}

/// The Lease stays after the lock, and the next command.
pub(crate) fn left(node: &str, error: &WriteError, program: &Program) -> (String, String) {
    let cause = cause(error);
    (
        format!("node/{node}: its medik8s Lease stays, and keeps medik8s off the node: {cause}"),
        format!("to delete it: `{}`", program.run(format!("unhold {node}"))),
    )
}
