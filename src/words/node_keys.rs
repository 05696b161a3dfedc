//! The outcome of writing the label, the cordon and the opt-outs of a lock, in words.

use maintenance_lease::NodeLease;
use other_tools::{Conflict, NodeKeys, Protected, tools};

use super::hint_command::Program;
use super::missing_right::ROLES;
use crate::error::{Failure, ProtectionError};
use crate::text::{escape, shown};

/// What a lock set on its Node besides the annotations.
pub(crate) fn protected(node: &str, is_hold: bool, protected: &Protected) -> String {
    let Protected {
        keys,
        stays_cordoned,
        ..
    } = protected;
    let opted_out = keys.opted_out_of().collect::<Vec<_>>().join(", ");
    let done = match (keys.cordon && !stays_cordoned, &*opted_out) {
        (false, "") => "labeled".to_owned(),
        (true, "") => "labeled and cordoned".to_owned(),
        (false, tools) => format!("labeled and opted out of {tools}"),
        (true, tools) => format!("labeled, cordoned and opted out of {tools}"),
    };
    let lock = if is_hold { "hold" } else { "lock" };
    let more = match (keys.cordon, stays_cordoned, is_hold) {
        (true, true, _) => "; it was already cordoned, so it stays cordoned after that",
        // The next steps of a hold say so.
        (true, false, false) => "; `kubectl drain` still evicts its pods",
        _ => "",
    };
    format!("node/{node} {done} until the {lock} ends{more}")
}

/// The cordon of a lock was removed with it.
pub(crate) fn uncordoned(node: &str) -> String {
    format!("node/{node} uncordoned")
}

/// Why the Node of a lock is not labeled and, with `cordon`, not cordoned.
pub(crate) fn not_labeled(lease: &NodeLease, cordon: bool, error: &ProtectionError) -> String {
    let missing = match (cordon, error.is_altered()) {
        (true, true) => ", but its held label or its cordon is missing",
        (false, true) => ", but its held label was changed",
        (true, false) => " without the held label and not cordoned",
        (false, false) => " without the held label",
    };
    let (node, is_hold) = (lease.node(), lease.is_hold());
    let locked = if is_hold { "on hold" } else { "locked" };
    format!("node/{node} is {locked}{missing}: {error}")
}

/// Why the label of a lock that was renewed still shows the earlier end.
pub(crate) fn end_not_moved(node: &str, error: &ProtectionError) -> String {
    format!(
        "could not update the end in the held label of node/{node}, if it has one; it may show an earlier end: {error}"
    )
}

/// Said to the next holder, of what an earlier lock had set.
pub(crate) fn earlier_removed(node: &str, keys: &NodeKeys) -> String {
    let removed = match &parts(keys)[..] {
        [] => String::new(),
        parts => format!(": {}", parts.join(", ")),
    };
    let schedulable = if keys.cordon {
        "; this uncordons the node"
    } else {
        ""
    };
    format!("node/{node}: removed what an earlier lock had set{removed}{schedulable}")
}

/// What was removed because the policies are uninstalled.
pub(crate) fn removed(node: &str, keys: &NodeKeys) -> String {
    format!("node/{node}: removed {}", parts(keys).join(", "))
}

/// Why it stays on a Node.
pub(crate) fn stay(node: &str, failure: &Failure) -> String {
    let cause = escape(&failure.to_string());
    format!("could not remove the held label and the opt-outs from node/{node}: {cause}")
}

/// Why nobody knows which Nodes have keys of locks.
pub(crate) fn not_cleared(failure: &Failure) -> String {
    let cause = escape(&failure.to_string());
    format!(
        "could not list the Nodes and locks, so held labels and opt-outs are not removed: {cause}"
    )
}

/// How to find what changes the writes to a Node.
pub(crate) fn check_webhooks(program: &Program) -> String {
    format!(
        "check `{}`",
        program.kubectl("get mutatingwebhookconfigurations")
    )
}

/// Why what a lock set on its Node was not removed.
pub(crate) fn keys_stay(node: &str, error: &ProtectionError) -> String {
    match error.is_altered() {
        true => {
            format!("node/{node} still has a label, an annotation or a cordon of the lock: {error}")
        }
        false => format!(
            "could not remove the held label, the opt-outs and the cordon from node/{node}, if the lock set them: {error}"
        ),
    }
}

/// What removes it, if nobody has the lock then, or in any case.
pub(crate) fn to_remove_left(
    node: &str,
    is_free: bool,
    error: &ProtectionError,
    program: &Program,
) -> String {
    let command = match is_free {
        true => program.run(format_args!("unhold {node}")),
        false => program.run("doctor --fix"),
    };
    let right = match error.is_missing_right() {
        true => format!("; this needs permission to patch nodes: {ROLES}"),
        false => String::new(),
    };
    let first = match error.is_altered() {
        true => format!("{}; then, ", check_webhooks(program)),
        false => String::new(),
    };
    format!("{first}to remove what is left: `{command}`{right}")
}

/// The warning and the hint about a held label that stays.
pub(crate) fn without_lock_id(node: &str, program: &Program) -> (String, String) {
    let warning = format!(
        "kept the held label of node/{node}: the node has no lock id, so it is unknown who set the label"
    );
    (warning, to_remove_label(node, program))
}

/// The hint that says how to remove the held label of a Node.
pub(crate) fn to_remove_label(node: &str, program: &Program) -> String {
    let command = format!("label node {node} kubectl-maint.dev/held-");
    format!("to remove it: `{}`", program.kubectl(command))
}

/// What to do with locks whose nodes could not be cordoned.
pub(crate) fn release_uncordoned(is_hold: bool, nodes: &[&str], program: &Program) -> String {
    let (verb, what) = match is_hold {
        true => ("unhold", "hold"),
        false => ("release", "lock"),
    };
    let release = program.run(format!("{verb} {}", nodes.join(" ")));
    format!("to end the {what}: `{release}`")
}

/// Nobody knows what is on the Node of a lock whose command was interrupted.
pub(crate) fn interrupted(node: &str, program: &Program) -> String {
    format!(
        "the write to node/{node} was in progress and may still label or cordon it; if the node is not locked, undo that with `{}`",
        program.run("doctor --fix")
    )
}

/// A key that was left as it is.
pub(crate) fn conflict(conflict: &Conflict) -> String {
    let manager = conflict.manager.as_deref().map(escape);
    let by = manager.map(|manager| format!(", set by {manager}"));
    format!(
        "{} was not changed: it is already {}{}",
        conflict.key,
        shown(&conflict.value),
        by.unwrap_or_default()
    )
}

/// What locks set on a Node, a line each; `None`: nothing.
pub(crate) fn set(keys: &NodeKeys) -> Option<String> {
    let lines = parts(keys);
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn parts(keys: &NodeKeys) -> Vec<String> {
    let pairs = keys.labels.iter().chain(&keys.annotations);
    let pairs = pairs.map(|(key, value)| format!("{}={}", escape(key), escape(value)));
    let cordon = keys.cordon.then(|| "cordon".to_owned());
    pairs.chain(cordon).collect()
}

/// The names for `--opt-outs`.
pub(crate) fn known_tools() -> String {
    let all: Vec<&str> = ["auto", "none"].into_iter().chain(tools()).collect();
    all.join(", ")
}
