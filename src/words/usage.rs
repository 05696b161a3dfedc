//! What is wrong with a command line, and what to type instead.

use super::hint_command::{NAME, NO_PROOF};

/// What completion says of the Node that `force-delete` offers.
pub(crate) const NODE_WITH_PODS: &str = "A Node with all its pods";

/// The parts of the help of `--create-namespace` that do not fit all commands.
pub(crate) const ON_A_TERMINAL: &str = " On a terminal,";
pub(crate) const UNLESS_YES: &str = ", unless you add --yes";
pub(crate) const WITH_YES: (&str, &str) = ("With --yes, or without", "Without");

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

pub(crate) fn put_dashes(flag: &str) -> String {
    format!(
        "if {flag} belongs to COMMAND, put `--` before COMMAND: {}",
        run_with()
    )
}

pub(crate) fn missing(what: &str) -> String {
    format!("missing {what}")
}

/// What to add if `command` lacks an argument; `None` if its name says it.
pub(crate) fn add_missing(command: &str, argument: &str) -> Option<String> {
    let hint = match (command, argument) {
        ("with", "NODE" | "`-- COMMAND`") => return Some(run_with()),
        (_, "--message") => "add -m WHY",
        (_, "--wait") => "add --wait, or remove --timeout",
        (_, "--pods") => "nodes have no namespace: remove -A, or add --pods to show stuck pods",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The hook begins with `program`.
pub(crate) fn put_dashes_before_hook(program: &str) -> String {
    format!("put `--` before the hook: `-- {program}`")
}

pub(crate) fn unknown_command(typed: &str) -> String {
    format!("unknown command \"{typed}\"")
}

pub(crate) fn takes_no_value(flag: &str) -> String {
    format!("{flag} takes no value")
}

/// `flag` was given with the value `typed`, but takes none.
pub(crate) fn without_value(flag: &str, typed: &str) -> String {
    match typed {
        "false" => format!("remove {flag}"),
        _ => use_flag(flag),
    }
}

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

/// `argument` has the value `typed`, but only these are `valid`.
pub(crate) fn unknown_value(argument: &str, typed: &str, valid: &[String]) -> String {
    let valid = match valid {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        valid => valid.concat(),
    };
    invalid_argument(argument, typed, &format!("use {valid}"))
}

/// The same as the argument parser writes it, with the `problem`.
pub(crate) fn invalid_argument(argument: &str, typed: &str, problem: &str) -> String {
    format!("invalid value '{typed}' for '{argument}': {problem}")
}

pub(crate) const MUST_BE_A_NUMBER: &str = "must be a number";

/// `command` takes nodes, but other words follow `--`.
pub(crate) fn runs_no_command(command: &str) -> String {
    format!("{command} does not run a command")
}

/// What follows `--`.
pub(crate) fn remove_command(command: &str) -> String {
    format!("remove `-- {command}`")
}

pub(crate) fn needs_value(flag: &str) -> String {
    format!("{flag} needs a value")
}

/// The invalid value is that of an environment variable.
pub(crate) fn is_value_of(variable: &str) -> String {
    format!("{variable} has this value: unset it, or set it to another")
}

pub(crate) fn say_how_powered_off() -> String {
    use_flag(&format!("--powered-off=\"{NO_PROOF}\""))
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

/// Few flags may come before the command.
pub(crate) fn put_after_command() -> String {
    format!("put the flags of a command after it; see `{NAME} --help` and `{NAME} options`")
}

pub(crate) fn cannot_be_combined(flags: &[&str]) -> String {
    format!("{} cannot be combined", flags.join(" and "))
}

pub(crate) const ONLY_ONE: &str = "use only one of them";

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

/// What to run instead of `typed`, a command of kubectl; `None` if that is not known.
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
        ("with", "--duration" | "--until") => "remove it: the lock lasts as long as COMMAND",
        ("force-delete", "-y" | "--yes" | "--force") => {
            "accept the risks by ID: --accept-risk=ID -m WHY"
        }
        ("install", "--dry-run") => {
            return Some(format!("print the objects with `{NAME} install -o yaml`"));
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
