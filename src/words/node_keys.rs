//! The outcome of writing the label, the cordon and the opt-outs of a hold, in words.

use other_tools::{Conflict, tools};

use crate::text::{escape, shown};

/// Said of Nodes that belong to a Cluster API Machine.
pub(crate) const CLUSTER_API: &str =
    "NOT protected from Cluster API: no opt-out on a Node stops it";

pub(crate) const LOCK_ENDED: &str = "another command has ended its hold, or has begun to";

pub(crate) const NODE_GONE: &str = "the Node does not exist, or cannot be read";

pub(crate) fn cordoned(node: &str) -> String {
    format!("node/{node} cordoned until the hold ends; `kubectl drain` still evicts its pods")
}

/// Why the Node of a hold is not labelled and, with `cordon`, not cordoned.
pub(crate) fn not_labelled(node: &str, cordon: bool, failure: &str) -> String {
    let missing = match cordon {
        true => "without the held label and not cordoned",
        false => "without the held label",
    };
    format!("node/{node} is on hold {missing}: {failure}")
}

/// Why the label of a hold that ends was not removed.
pub(crate) fn label_stays(node: &str, cause: &str) -> String {
    format!("node/{node}: if it has a held label, that stays: {cause}")
}

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
