//! What became of the opt-outs that a hold sets on its Node, in words.

use other_tools::{Conflict, tools};

use crate::text::{escape, shown};

/// Said of Nodes that belong to a Cluster API Machine.
pub(crate) const CLUSTER_API: &str =
    "NOT protected from Cluster API: no opt-out on a Node stops it";

/// A key that was left as it is.
pub(crate) fn conflict(conflict: &Conflict) -> String {
    let manager = conflict.manager.as_deref().map(escape);
    let by = manager.map(|manager| format!(", set by {manager}"));
    format!(
        "{} is not set: its value is {} already{}",
        conflict.key,
        shown(&conflict.value),
        by.unwrap_or_default()
    )
}

/// The names for `--opt-outs`.
pub(crate) fn known_tools() -> String {
    let all: Vec<&str> = ["auto", "none"].into_iter().chain(tools()).collect();
    all.join(", ")
}
