//! Invalid input: what is wrong, and what to type instead.

use super::hint_command::{NO_PROOF, Program};
use super::time::{length, longest_lock};
use super::usage::{ONLY_ONE, cannot_be_combined, missing};
use crate::error::InputError;
use crate::object::Kind;
use crate::text::{for_shell, shown};

/// What the names of objects consist of.
const NAMES: &str = "names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and \
                     have at most 253 characters";

const NAMESPACES: &str = "names have only lower-case letters, digits and -, begin and end with a letter or digit, and \
                          have at most 63 characters";

const ONE_ON_EACH_LINE: &str = "put one node on each line";

/// Message and hint.
pub(crate) fn lines(error: &InputError, program: &Program) -> (String, String) {
    match error {
        InputError::NoNodes { mine } => {
            let mine = if *mine { "--mine, " } else { "" };
            both(
                missing("NODE"),
                format!("name nodes, or use {mine}-l SELECTOR, --all or --nodes-from FILE"),
            )
        }
        InputError::ManySelections(used) => both(cannot_be_combined(used), ONLY_ONE),
        InputError::EmptySelector => both(
            "the selector of -l is empty",
            "to select all nodes, use --all",
        ),
        InputError::LongSelector { most } => both(
            format!("the selector of -l is longer than {} KiB", most >> 10),
            "to select that many nodes, use --nodes-from FILE",
        ),
        InputError::NotANode(typed) => both(
            format!("\"{}\" is not a node", shown(typed)),
            format!(
                "only nodes have a maintenance lock; use node/NAME, not {}/NAME",
                shown(typed.split('/').next().unwrap_or_default())
            ),
        ),
        InputError::ObjectName { kind, name } => {
            let names = match kind {
                Kind::Namespace => NAMESPACES,
                Kind::Node | Kind::Pod | Kind::Claim => NAMES,
            };
            let kind = kind.word();
            both(
                match name.is_empty() {
                    true => format!("a {kind} name must not be empty"),
                    false => format!("\"{}\" is not a valid {kind} name", shown(name)),
                },
                format!("{kind} {names}"),
            )
        }
        InputError::NodeNames(names) => both(
            format!("\"{}\" is not a valid node name", shown(names)),
            "separate node names with spaces",
        ),
        InputError::Line {
            list,
            number,
            error,
        } => {
            let (message, hint) = lines(error, program);
            let list = list.display();
            both(
                format!("--nodes-from {list}, line {number}: {message}"),
                match **error {
                    InputError::NodeNames(_) => ONE_ON_EACH_LINE.to_owned(),
                    _ => hint,
                },
            )
        }
        InputError::NotAList { list, longest } => both(
            match longest {
                None => format!("--nodes-from {}: not UTF-8 text", list.display()),
                Some(most) => format!(
                    "--nodes-from {}: longer than {} MiB",
                    list.display(),
                    most >> 20
                ),
            },
            "give a text file with one node on each line",
        ),
        InputError::Past => both(
            "--expect-until is in the past, by the API server's clock",
            "use a time in the future",
        ),
        InputError::BeyondCalendar => both(
            "--expect-until is after the year 9999",
            "remove --expect-until: a hold does not expire",
        ),
        InputError::ShortLease {
            lease,
            request,
            grace,
            shortest,
        } => {
            let times = [lease, request, grace, shortest];
            let [lease, request, grace, shortest] = times.map(|&time| length(time.into()));
            both(
                format!(
                    "--lease-duration {lease} is too short: --request-timeout {request} and --grace {grace} \
                     need at least {shortest}"
                ),
                format!(
                    "use a shorter --request-timeout or --grace, or a longer --lease-duration (at most {})",
                    longest_lock()
                ),
            )
        }
        InputError::Holder(error) => both(error.to_string(), "choose another name with --holder"),
        InputError::NoLockIds { flag } => both(
            format!("-o lock-id cannot be combined with {flag}: nothing is locked"),
            ONLY_ONE,
        ),
        InputError::NoLockIdOfFree => both(
            "-o lock-id needs another --for: a free node has no lock id",
            "use --for=locked, or remove -o lock-id",
        ),
        InputError::MissingLockId { variable } => both(
            "missing --lock-id",
            format!("add it, or set {variable}: it is the output of `acquire -o lock-id`"),
        ),
        InputError::NoLockIdOf { source, node } => both(
            format!("{source} has no lock id for node/{node}"),
            without_lock_ids("name only nodes with a lock id", source),
        ),
        InputError::NoNodeOfLockId => {
            both(missing("NODE"), "name the node that the lock id is for")
        }
        InputError::LockIdOfMany { source } => both(
            format!("{source} is for one node only"),
            without_lock_ids("name that node only", source),
        ),
        InputError::LockIdsOfUnnamed { source } => both(
            format!("{source} is only for nodes that you name"),
            without_lock_ids("name these nodes", source),
        ),
        InputError::LockIdWithForce { source } => both(
            format!("--force takes over the lock of somebody else, but {source} is for your own"),
            match is_flag(source) {
                true => ONLY_ONE.to_owned(),
                false => unset(source),
            },
        ),
        InputError::NotALockId { variable } => both(
            format!("{variable} is not a lock id"),
            format!("unset {variable}, or set it to the output of `acquire -o lock-id`"),
        ),
        InputError::NoProof => both(
            "missing proof that the node is off",
            format!("add `--powered-off=\"{NO_PROOF}\"` or `-- HOOK`"),
        ),
        InputError::SuspectNeedsHook(node) => {
            let dry_run = program.dry_run();
            let command = format_args!("fence {node} --suspect{dry_run} -- HOOK");
            both(
                "--suspect needs a HOOK",
                format!("run `{}`", program.run(command)),
            )
        }
        InputError::EmptyPodSelector => both(
            "the selector of -l is empty: it would match all pods in the namespace",
            "give a label selector, e.g. -l app=web, or name the pods",
        ),
        InputError::NotATarget {
            typed,
            is_risk: true,
        } => both(
            format!("{:?} is neither a pod nor a node", shown(typed)),
            format!("to accept this risk, write --accept-risk={typed}"),
        ),
        InputError::NotATarget { typed, .. } => {
            let (fault, name) = match typed.contains(['/', ' ']) {
                true => ("is neither a pod nor a node", "NAME"),
                false => ("has no kind", &*for_shell(typed)),
            };
            both(
                format!("{:?} {fault}", shown(typed)),
                format!("use pod/{name} or node/{name}"),
            )
        }
        InputError::MissingName { kind } => both(
            format!("missing NAME after {kind}"),
            format!("use {kind}/NAME"),
        ),
        InputError::NoTargets => both(
            missing("pod/NAME or node/NAME"),
            "name pods or a node, or use -l SELECTOR",
        ),
        InputError::NodeNotAlone => both(
            "a node can only be deleted alone",
            "give one node/NAME, or only pods",
        ),
        InputError::PodsOfMany => both(
            "--pods takes one node, or none for all nodes",
            "name at most one node",
        ),
        InputError::PodsOfNamespace => both("--pods shows all namespaces", "remove -n"),
        InputError::NotExplained { typed, .. } if !typed.contains(['/', ' ']) => both(
            format!("\"{}\" has no kind", shown(typed)),
            format!(
                "use pod/{typed}, pvc/{typed} or namespace/{typed}",
                typed = for_shell(typed)
            ),
        ),
        InputError::NotExplained { typed, node } => both(
            format!("`why` does not explain {}", shown(typed)),
            match node.as_deref().map(for_shell) {
                Some(node) => format!(
                    "show what is stuck there with `{}`, or its lock and health with `{}`",
                    program.run(format_args!("status --pods {node}")),
                    program.run(format_args!("describe {node}"))
                ),
                None => format!(
                    "use pod/NAME, pvc/NAME or namespace/NAME; find its pods with `{}`",
                    program.kubectl("get pods")
                ),
            },
        ),
        InputError::NotOneObject => both(
            "why explains one object at a time",
            "run it once for each object",
        ),
    }
}

fn both(message: impl Into<String>, hint: impl Into<String>) -> (String, String) {
    (message.into(), hint.into())
}

/// Whether the lock id comes from a flag. Otherwise, it comes from a variable.
fn is_flag(source: &str) -> bool {
    source.starts_with("--")
}

/// What to do instead, or else without the lock ids of `source`.
fn without_lock_ids(instead: &str, source: &str) -> String {
    match is_flag(source) {
        true => format!("{instead}, or remove {source}"),
        false => format!("{instead}, or {}", unset(source)),
    }
}

fn unset(variable: &str) -> String {
    format!("put `env -u {variable}` before the command")
}
