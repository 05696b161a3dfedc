//! What is wrong with a command line, and what to type instead.

use super::hint_command::NAME;

/// What completion says of the Node that `force-delete` offers.
pub(crate) const NODE_WITH_PODS: &str = "A Node with all its pods";

/// What the blocker `id` of a forced deletion means; `None` if there is no such blocker.
pub(crate) fn blocker(id: &str) -> Option<&'static str> {
    Some(match id {
        "not-deleting" => "The pod was never asked to end",
        "in-grace" => "Its grace period has not ended",
        "node-alive" => "The kubelet is alive and can end the pods",
        "lease" => "Somebody else has locked the node",
        "remediation" => "A medik8s operator is repairing the node",
        "rights" => "You lack a permission",
        _ => return None,
    })
}

/// How to run `with`.
pub(crate) fn run_with() -> String {
    format!("run `{NAME} with NODE... -- COMMAND`")
}

pub(crate) fn missing(what: &str) -> String {
    format!("missing {what}")
}

/// `--wait` is followed by a time `limit`.
pub(crate) fn detached_limit(limit: &str) -> (String, String) {
    (
        "--wait takes no value".to_owned(),
        format!("to wait at most {limit}, use --wait --timeout {limit}"),
    )
}

/// `--dry-run` is followed by a `mode` of kubectl's flag.
pub(crate) fn detached_mode(mode: &str) -> (String, String) {
    (
        "--dry-run takes its value after =".to_owned(),
        format!("use --dry-run={mode}; if {mode} is a node, put it before --dry-run"),
    )
}

pub(crate) fn did_you_mean(near: &str) -> String {
    format!("did you mean {near}?")
}

pub(crate) fn cannot_be_combined(flags: &[&str]) -> String {
    format!("{} cannot be combined", flags.join(" and "))
}

pub(crate) const ONLY_ONE: &str = "use only one of them";
