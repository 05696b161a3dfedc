//! What is wrong with a command line, and what to type instead.

use super::hint_command::{NAME, NO_PROOF};

/// What completion says of the Node that `force-delete` offers.
pub(crate) const NODE_WITH_PODS: &str = "A Node with all its pods";

/// How to run `with`.
pub(crate) fn run_with() -> String {
    format!("run `{NAME} with NODE... -- COMMAND`")
}

/// `line` is the same with a placeholder for the missing command.
pub(crate) fn add_command(line: &str) -> String {
    format!("add the command: `{line}`")
}

pub(crate) fn no_flag(command: &str, flag: &str) -> String {
    format!("{command} has no flag {flag}")
}

/// `flag` would set how long the lock of `with` lasts.
pub(crate) fn with_has_no_end(flag: &str) -> String {
    format!(
        "{}: the lock lasts as long as COMMAND",
        no_flag("with", flag)
    )
}

pub(crate) const LEASE_DURATION_INSTEAD: &str =
    "remove it; --lease-duration is the time until the lock expires after a crash";

pub(crate) fn put_dashes(flag: &str) -> String {
    format!(
        "if {flag} belongs to COMMAND, put `--` before COMMAND: {}",
        run_with()
    )
}

pub(crate) fn missing(what: &str) -> String {
    format!("missing {what}")
}

/// Several are missing.
pub(crate) fn all_missing(what: &[&str]) -> String {
    missing(&what.join(" and "))
}

pub(crate) const NO_COMMAND_AFTER_DASHES: &str = "missing COMMAND after `--`";

pub(crate) const NO_COMMAND: &str = "missing `-- COMMAND`";

pub(crate) const ADD_MAX: &str = "add --max=N, the most nodes to fence";

pub(crate) const ADD_REASON: &str = "add -m \"WHY\"";

/// The hook begins with `program`.
pub(crate) fn put_dashes_before_hook(program: &str) -> String {
    format!("put `--` before the hook: `-- {program}`")
}

pub(crate) fn requires(flag: &str, other: &str) -> String {
    format!("{flag} requires {other}")
}

pub(crate) const NO_NAMESPACE_BUT_PODS: &str =
    "nodes have no namespace: remove -n, or add --pods to show stuck pods";

pub(crate) fn unknown_command(typed: &str) -> String {
    format!("unknown command \"{typed}\"")
}

pub(crate) const WAIT_TAKES_NO_VALUE: &str = "--wait takes no value";

pub(crate) const TIMEOUT_LIMITS_THE_WAIT: &str = "remove the value; --timeout limits the wait";

pub(crate) fn limit_wait(limit: &str) -> String {
    format!("to wait at most {limit}, use --wait --timeout {limit}")
}

pub(crate) fn takes_value_after_equals(flag: &str) -> String {
    format!("{flag} takes its value after =")
}

pub(crate) fn use_flag(flag: &str) -> String {
    format!("use {flag}")
}

pub(crate) fn use_dry_run(mode: &str) -> String {
    format!("use --dry-run={mode}; if {mode} is a node, put it before --dry-run")
}

pub(crate) fn needs_value(flag: &str) -> String {
    format!("{flag} needs a value")
}

/// `problem` with the value `typed` of `flag`.
pub(crate) fn invalid_value(flag: &str, typed: &str, problem: &str) -> String {
    format!("{flag} {typed}: {problem}")
}

/// The invalid value is that of an environment variable.
pub(crate) fn is_value_of(variable: &str) -> String {
    format!("{variable} has this value: unset it, or set it to another")
}

pub(crate) fn how_powered_off(node: &str) -> String {
    format!("run `{NAME} fence {node} --powered-off=\"{NO_PROOF}\"`")
}

pub(crate) fn unexpected_argument(typed: &str) -> String {
    format!("unexpected argument \"{typed}\"")
}

pub(crate) fn did_you_mean(near: &str) -> String {
    format!("did you mean {near}?")
}

/// The same for a command.
pub(crate) fn did_you_mean_command(near: &str) -> String {
    did_you_mean(&format!("`{NAME} {near}`"))
}

pub(crate) fn unknown_flag(typed: &str) -> String {
    format!("unknown flag: {typed}")
}

pub(crate) fn put_after_command(flag: &str, command: &str) -> String {
    format!("put {flag} after the command: `{NAME} {command} … {flag} …`")
}

pub(crate) fn conflict(one: &str, other: &str) -> String {
    format!("{one} cannot be used with {other}")
}

pub(crate) fn see_flags() -> String {
    format!("see `{NAME} --help` and `{NAME} options`")
}

pub(crate) fn see_commands() -> String {
    format!("see `{NAME} --help` for the list of commands")
}

/// Where to read more about `command`, if there is one.
pub(crate) fn see_help(command: Option<&str>) -> String {
    match command {
        Some(command) => format!("see `{NAME} {command} --help`"),
        None => format!("see `{NAME} --help`"),
    }
}

/// What to run instead of kubectl's command `typed`; `None` if that is not known.
pub(crate) fn instead_of_kubectl(typed: &str) -> Option<String> {
    match typed {
        "get" | "list" | "ls" => Some(format!("run `{NAME} status`")),
        "drain" | "cordon" => Some(format!(
            "lock the node with `{NAME} acquire NODE`, then run `kubectl {typed} NODE`"
        )),
        _ => None,
    }
}

pub(crate) fn to_end_another(command: &str) -> String {
    format!("to end somebody else's lock, run `{command}`")
}

pub(crate) fn to_take_over(command: &str) -> String {
    format!("to take over somebody else's lock, run `{command}`")
}

/// What to type instead of a flag that `command` does not have; `None` if nothing is known about it.
pub(crate) fn instead_of_flag(command: &str, flag: &str) -> Option<String> {
    let hint = match (command, flag) {
        ("describe", "-o" | "--output") => {
            return Some(format!("print data with `{NAME} status NODE -o json`"));
        }
        ("with", "-l" | "--selector" | "--all") => "name the nodes before --",
        ("force-delete", "-y" | "--yes" | "--force") => {
            "accept the risks by name: --accept-risk=ID -m \"WHY\""
        }
        ("hold", "--duration") => {
            "a hold does not expire; --expect-until shows others when you expect to end it"
        }
        ("unhold", "--force") => "remove it: unhold asks you to confirm if the hold is not yours",
        ("unhold", "-m" | "--message" | "--reason") => {
            "remove it: an Event on the node records who ended the hold"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}
