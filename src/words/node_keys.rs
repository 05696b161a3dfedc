//! The outcome of writing the label, the cordon and the opt-outs of a lock, in words.

use other_tools::{Conflict, NodeKeys, tools};

use crate::text::{escape, shown};

/// Said of Nodes that belong to a Cluster API Machine.
pub(crate) const CLUSTER_API: &str =
    "NOT protected from Cluster API: no opt-out on a Node stops it";

/// The lock has ended, or is being ended.
pub(crate) fn lock_ended(is_hold: bool) -> String {
    match is_hold {
        true => "another command has ended its hold, or has begun to".to_owned(),
        false => "its lock has ended, or an interrupted command has begun to end it; to label the Node, run \
                  `release`, then acquire it again"
            .to_owned(),
    }
}

pub(crate) const NODE_GONE: &str = "the Node does not exist, or cannot be read";

pub(crate) fn cordoned(node: &str, is_hold: bool) -> String {
    let lock = if is_hold { "hold" } else { "lock" };
    format!("node/{node} cordoned until the {lock} ends; `kubectl drain` still evicts its pods")
}

/// Why the Node of a lock is not labelled and, with `cordon`, not cordoned.
pub(crate) fn not_labelled(node: &str, is_hold: bool, cordon: bool, failure: &str) -> String {
    let missing = match cordon {
        true => "without the held label and not cordoned",
        false => "without the held label",
    };
    let locked = if is_hold { "on hold" } else { "locked" };
    format!("node/{node} is {locked} {missing}: {failure}")
}

/// Why the label of a lock that was renewed still shows the earlier end.
pub(crate) fn end_not_moved(node: &str, failure: &str) -> String {
    format!(
        "node/{node}: the held label was not extended, so it may end before the lock: {failure}"
    )
}

/// Said to the next holder.
pub(crate) fn expired_removed(node: &str) -> String {
    format!(
        "node/{node}: removed the held label of the expired lock, and its opt-outs and its cordon if it had set any"
    )
}

/// Why the label of a lock that ends was not removed.
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

/// What locks set on a Node, a line each; `None`: nothing.
pub(crate) fn set(keys: &NodeKeys) -> Option<String> {
    let pairs = keys.labels.iter().chain(&keys.annotations);
    let pairs = pairs.map(|(key, value)| format!("{}={}", escape(key), escape(value)));
    let cordon = keys.cordon.then(|| "cordon".to_owned());
    let lines: Vec<String> = pairs.chain(cordon).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The names for `--opt-outs`.
pub(crate) fn known_tools() -> String {
    let all: Vec<&str> = ["auto", "none"].into_iter().chain(tools()).collect();
    all.join(", ")
}
