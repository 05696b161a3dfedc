//! What locks ask of their Nodes, in words.

use std::fmt;

use maintenance_lease::protocol::{Now, State};
use maintenance_lease::{Error, NodeLease};
use node_keys::{Conflict, Mismatch, NodeKeys, NotSet, Wanted, tools};

use super::failed_request;
use super::hint_command::Program;
use super::missing_right::ROLES;
use crate::error::{Failure, KeysError};
use crate::text::{escape, shown};

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::NotSet(NotSet::LockEnded) => "another command has ended the lock",
            Self::NotSet(NotSet::NodeGone) => "the Node does not exist, or cannot be read",
            Self::NotSet(NotSet::Failed(error)) => &match error {
                Error::Api(error) => failed_request::cause(error),
                error => error.to_string(),
            },
            Self::TooSlow(limit) => {
                &format!("the API server did not answer in {}s", limit.as_secs())
            }
        };
        f.write_str(&escape(words))
    }
}

/// What a lock set on its Node besides the annotations.
pub(crate) fn protected(node: &str, is_hold: bool, wanted: &Wanted) -> String {
    let Wanted {
        keys,
        stays_cordoned,
        ..
    } = wanted;
    let opted_out = keys.opted_out_of().collect::<Vec<_>>().join(", ");
    let done = match (keys.cordon, &*opted_out) {
        (false, "") => "labeled".to_owned(),
        (true, "") => "labeled and cordoned".to_owned(),
        (false, tools) => format!("labeled and opted out of {tools}"),
        (true, tools) => format!("labeled, cordoned and opted out of {tools}"),
    };
    let lock = if is_hold { "hold" } else { "lock" };
    let more = match (keys.cordon, stays_cordoned, is_hold) {
        (_, true, _) => "; it was already cordoned, so it stays cordoned after that",
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
pub(crate) fn not_labeled(lease: &NodeLease, cordon: bool, error: &KeysError) -> String {
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
pub(crate) fn end_not_moved(node: &str, error: &KeysError) -> String {
    format!(
        "could not update the end in the held label of node/{node}, if it has one; it may show an earlier end: {error}"
    )
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
pub(crate) fn keys_stay(node: &str, error: &KeysError) -> String {
    match error.is_altered() {
        true => {
            format!("node/{node} still has a label, an annotation or a cordon of the lock: {error}")
        }
        false => format!(
            "could not remove the held label, the opt-outs and the cordon from node/{node}, if the lock set them: {error}"
        ),
    }
}

/// What removes it.
pub(crate) fn to_remove_left(error: &KeysError, program: &Program) -> String {
    let command = program.run("doctor --fix");
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

/// What to do with locks whose nodes could not be cordoned.
pub(crate) fn release_uncordoned(is_hold: bool, nodes: &[&str], program: &Program) -> String {
    let (verb, what) = match is_hold {
        true => ("unhold", "hold"),
        false => ("release", "lock"),
    };
    let release = program.run(format!("{verb} {}", nodes.join(" ")));
    format!("to end the {what}: `{release}`")
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

/// What is wrong with the keys on a Node, by the lock that it has. Those of an expired lock stay, because its work may be
/// unfinished.
pub(crate) fn mismatch(
    keys: Option<&NodeKeys>,
    lease: Option<&NodeLease>,
    now: Now,
) -> Option<String> {
    if lease.is_some_and(|lease| matches!(lease.state(now), State::Expired { .. })) {
        return None;
    }
    let says = match keys?.mismatch(lease, now)? {
        Mismatch::Missing => "the held label, opt-outs or cordon of its lock are missing",
        Mismatch::LeftOver => "a lock that has ended or expired left a label, opt-outs or a cordon",
    };
    Some(format!("{says}: run `doctor --fix`"))
}

fn parts(keys: &NodeKeys) -> Vec<String> {
    let keys = keys.clone().without_notes();
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
