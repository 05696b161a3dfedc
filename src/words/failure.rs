//! A failure in two lines: what went wrong, in kubectl's words, and what to do about it.

use std::fmt;
use std::time::Duration;

use connect::in_words;
use maintenance_lease::{ApiError, Error, NodeLease};

use super::force_deletion::no_answer;
use super::hint_command::Program;
use super::request::RequestContext;
use super::time::{clock, length};
use super::{
    failed_request, fencing, input, loss, missing_right, node_state, other_tools, policies, refusal,
};
use crate::error::{Failure, NothingFound, Obstacle, ProgramError, Unconfirmed, Verb};
use crate::text::{escape, for_shell, shown};

/// The message alone.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lines(self, &Program::default(), None).0)
    }
}

/// Message and hint, which names commands of `program`. `request` is the request for locks that failed, if it
/// was one.
pub(crate) fn lines(
    failure: &Failure,
    program: &Program,
    request: Option<RequestContext<'_>>,
) -> (String, Option<String>) {
    if let Some(lines) = of_connection(failure) {
        return lines;
    }
    let run = |text: &str, line: String| request.map(|_| format!("{text} `{}`", program.run(line)));
    let check = |node: &str| run("check with", format!("status {node}"));
    match failure {
        Failure::Input(error) => with_hint(input::lines(error, program)),
        Failure::UnknownDeletion { target, error } => {
            let why = error.as_ref().map(ToString::to_string);
            let within = target.namespace.as_ref();
            let within = within.map(|namespace| format!(" -n {}", for_shell(namespace)));
            (
                format!(
                    "unknown whether {target} was force-deleted: the request may still take effect ({})",
                    escape(no_answer(why.as_ref()))
                ),
                Some(format!(
                    "check with `{}`",
                    program.kubectl(format_args!("get {target}{}", within.unwrap_or_default()))
                )),
            )
        }
        Failure::InterruptedLock { node, duration } => (
            format!(
                "interrupted: node/{node} may stay locked for up to {}s",
                duration.as_secs()
            ),
            Some(format!("check with `{}`", program.run(format_args!("status {node}")))),
        ),
        Failure::Unread { node, why } => {
            (escape(&format!("could not read node/{node}: {why}")), None)
        }
        Failure::Fencing(refusal) => with_hint(fencing::refusal(refusal, program)),
        Failure::OtherTools { nodes, now } => (
            other_tools::refusal(nodes, *now),
            Some("wait until they have finished, or run the command without --strict".to_owned()),
        ),
        Failure::Policies(refusal) => with_hint(policies::refusal(refusal, program)),
        Failure::Program(error) => with_hint(cannot_run(error)),
        Failure::Hook(error) => with_hint(fencing::of_hook(error, program)),
        Failure::UnknownFencing { node, write, why } => {
            with_hint(fencing::unknown(node, write, why, program))
        }
        Failure::Unexpected(error) => (escape(&causes(error)), None),
        Failure::NothingFound(nothing) => nothing_found(nothing, program),
        Failure::Connect(error) => (escape(&error.to_string()), error.hint()),
        Failure::Lock(error) => of_locks(error, program, request),
        Failure::Unconfirmed(why) => (
            unconfirmed(why),
            (!matches!(why, Unconfirmed::NoAnswer(_)))
                .then(|| format!("add --yes{} to confirm", program.place_of_flags())),
        ),
        Failure::Declined => ("not confirmed".to_owned(), None),
        Failure::Interrupted => ("interrupted".to_owned(), None),
        Failure::InterruptedAgain => (
            "interrupted again: locks of this command may remain, and a request may still take effect"
                .to_owned(),
            Some(format!("check with `{}`", program.run("status --mine"))),
        ),
        Failure::InterruptedAfterResult => (
            "interrupted after the result was printed, which counts: an Event, the held label or a cordon may be missing or left"
                .to_owned(),
            Some(format!("check with `{}`", program.run("doctor"))),
        ),
        Failure::InterruptedWrite { node } => (
            format!("interrupted: the write for node/{node} was in progress and may still take effect"),
            check(node),
        ),
        Failure::KeepsChanging { node, error } => (
            format!(
                "could not update node/{node}: it keeps changing ({})",
                failed_request::cause(error)
            ),
            None,
        ),
        Failure::NotKept { node } => with_hint(fencing::not_kept(node, program)),
        Failure::NoLongerFenced { node } => with_hint(fencing::no_longer_fenced(node, program)),
        Failure::StaysFenced { node } => with_hint(fencing::stays(node, program)),
        Failure::UnknownWrite { node, error } => (
            format!(
                "unknown whether node/{node} was changed: {}",
                unanswered(error.as_ref())
            ),
            check(node),
        ),
        Failure::NodeGone { node } => (
            format!("node/{node} was deleted, along with its lock and records"),
            None,
        ),
        Failure::TimedOut {
            node,
            waited,
            obstacle,
        } => timed_out(node, *waited, obstacle.as_ref(), program, request),
        Failure::Unanswered { waited } => (
            format!(
                "timed out after {}: the API server did not answer",
                length((*waited).into())
            ),
            Some(refusal::LONGER.to_owned()),
        ),
        Failure::UnknownTime => (
            "the API server's time is unknown, because this machine was paused: nothing was changed"
                .to_owned(),
            Some("run the command again".to_owned()),
        ),
        Failure::WrongLockId { node, lease } => (
            match lease {
                Some(lease) => format!(
                    "the lock id does not match the lock of node/{node}{}",
                    and_state(lease, request)
                ),
                None => format!(
                    "node/{node} has no Lease: the lock id is for another node, or the Lease was deleted"
                ),
            },
            Some(
                "if you meant another node, name it; otherwise, stop the work that relied on this lock"
                    .to_owned(),
            ),
        ),
        Failure::ReleaseFailed {
            node,
            lock_id,
            until,
            cause,
        } => {
            let (cause, _) = lines(cause, program, request);
            let lock_id = lock_id.as_ref().map(|id| format!(" --lock-id {id}"));
            let (was, line) = match request.map(|request| request.verb) {
                Some(Verb::Hold) => ("put on hold", format!("unhold {node}")),
                _ => (
                    "acquired",
                    format!("release {node}{}", lock_id.unwrap_or_default()),
                ),
            };
            let until = until.zip(request).map(|(until, request)| {
                format!(", and may be locked until {}", clock(until, request.now.latest))
            });
            let until = until.unwrap_or_default();
            (
                format!("node/{node} was {was} but could not be released{until}: {cause}"),
                run("release it with", line),
            )
        }
        Failure::Reported(_) => (String::new(), None),
    }
}

/// The same for a refusal or failure of the library.
fn of_locks(
    error: &Error,
    program: &Program,
    request: Option<RequestContext<'_>>,
) -> (String, Option<String>) {
    let check = |text: &str, node: &str| {
        request.map(|_| format!("{text} `{}`", program.run(format_args!("status {node}"))))
    };
    match (error, request) {
        (
            Error::Unknown {
                node,
                intent,
                source,
                ..
            },
            _,
        ) => {
            let why = match source {
                ApiError::Altered => source.to_string(),
                _ => format!(
                    "the write may still take effect ({})",
                    failed_request::cause(source)
                ),
            };
            (
                format!("unknown whether node/{node} was {intent}: {why}"),
                check("check with", node),
            )
        }
        (Error::Refused(refused), Some(request)) => with_hint(refusal::lines(refused, request)),
        (Error::Refused(refused), None) => (refused.to_string(), None),
        (Error::MissingRight { source, .. } | Error::Api(source), _)
            if source.policy_refusal().is_some() =>
        {
            policies::rule(source, program, request)
        }
        (Error::MissingRight { right, source }, _) => (
            escape(&source.to_string()),
            Some(missing_right::permission(right)),
        ),
        // Each of these commands writes many kinds of objects.
        (Error::Api(source), _)
            if source.is_forbidden()
                && matches!(program.verb(), "install" | "enforce" | "uninstall") =>
        {
            (
                escape(&source.to_string()),
                Some("ask a cluster administrator to run this command".to_owned()),
            )
        }
        (Error::NodeDeleting(node), Some(request)) => (
            format!(
                "{}: the Node is being deleted, and its Lease with it",
                request.verb.failed(node)
            ),
            None,
        ),
        (Error::NamespaceTerminating(namespace), _) => (
            format!("namespace {namespace} is being deleted, and every lock with it"),
            Some(policies::until_namespace_is_gone(program)),
        ),
        (Error::NamespaceMissing(namespace), _) => (
            error.to_string(),
            Some(format!(
                "create it with `{}`",
                program.kubectl(format_args!("create namespace {namespace}"))
            )),
        ),
        (Error::Contended { .. }, _) => (
            error.to_string(),
            Some("nothing was changed; run the command again".to_owned()),
        ),
        (Error::Lost(lost), Some(request)) => {
            with_hint(loss::while_locking(lost, request.now, program))
        }
        (Error::Lost(lost), None) => (lost.to_string(), None),
        _ => (escape(&error.to_string()), None),
    }
}

/// A program can't be run, so nothing was begun.
fn cannot_run(error: &ProgramError) -> (String, String) {
    let (program, why) = match error {
        ProgramError::NotFound(program) => (program, "not found"),
        ProgramError::NotExecutable(program) => (program, "not executable"),
    };
    if ["COMMAND", "HOOK"].contains(&program.as_str()) {
        return (
            format!("{program} is a placeholder"),
            format!("replace {program} with your command"),
        );
    }
    (
        format!("cannot run {}: {why}; nothing was changed", escape(program)),
        "give the path of an executable file, or the name of a program in PATH".to_owned(),
    )
}

/// Why the result of a write is unknown.
pub(super) fn unanswered(error: Option<&ApiError>) -> String {
    error.map_or_else(|| "interrupted".to_owned(), failed_request::cause)
}

/// What was not found, and what else could be done.
pub(crate) fn nothing_found(nothing: &NothingFound, program: &Program) -> (String, Option<String>) {
    let (what, hint) = match nothing {
        NothingFound::Own {
            caller,
            verb,
            has_others,
        } => return no_own_lock(caller, *verb, *has_others, program),
        NothingFound::Listed(list) => {
            return (
                format!("--nodes-from {} has no nodes", list.display()),
                None,
            );
        }
        NothingFound::Nodes => return ("the cluster has no nodes".to_owned(), None),
        NothingFound::Labeled(selector) => {
            return (format!("no node matches -l {}", shown(selector)), None);
        }
        NothingFound::Object {
            namespace: Some(namespace),
            object,
        } => {
            let is_pod = object.starts_with("pod/");
            (
                format!("{object} in namespace {namespace}"),
                is_pod.then(|| find_pod(program)),
            )
        }
        NothingFound::Object { object, .. } => (object.clone(), None),
        NothingFound::Pod { namespace, name } => (
            format!("pod/{name} in namespace {namespace}"),
            Some(find_pod(program)),
        ),
        NothingFound::Pods {
            namespace,
            selector,
        } => (
            format!("pods with {selector} in namespace {namespace}"),
            None,
        ),
    };
    (format!("no matching resources found: {what}"), hint)
}

/// The caller has no lock that `verb` can change.
fn no_own_lock(
    caller: &str,
    verb: Verb,
    has_others: bool,
    program: &Program,
) -> (String, Option<String>) {
    let (nothing, other, other_verb) = match verb {
        Verb::Unhold => ("no node on hold", "release your locks", "release"),
        _ => ("no lock", "end your holds", "unhold"),
    };
    let hint = has_others.then(|| {
        let command = program.run(format_args!("{other_verb} --mine"));
        format!("{other} with `{command}`")
    });
    let (verb, caller) = (verb.name(), escape(caller));
    (
        format!("nothing to {verb}: you ({caller}) have {nothing}"),
        hint,
    )
}

/// How to find a pod that is not in this namespace.
fn find_pod(program: &Program) -> String {
    let find = program.kubectl("get pods -A");
    format!("find its namespace with `{find}`, and give it with -n")
}

/// A template gives no text.
pub(crate) const NO_TEXT: &str =
    "the template printed nothing; -o json shows the fields, most of them under .items[*]";

/// Data can't be serialized.
pub(crate) const UNPRINTABLE: &str = "could not print the result";

/// A template needs elements that the data does not have.
pub(crate) const UNFILLED: &str = "could not apply the template";

/// Data can't be written.
pub(crate) fn unwritten(error: &std::io::Error) -> String {
    format!("could not write the result: {error}")
}

fn unconfirmed(why: &Unconfirmed) -> String {
    match why {
        Unconfirmed::NoTerminal => "not confirmed: there is no terminal for a prompt".to_owned(),
        Unconfirmed::StdinInUse => {
            "not confirmed: --nodes-from - uses standard input, so there is no prompt".to_owned()
        }
        Unconfirmed::NoAnswer(error) => escape(&format!("could not ask for confirmation: {error}")),
    }
}

/// An error after its contexts, with causes that it does not name itself.
fn causes(error: &anyhow::Error) -> String {
    let mut all = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if all.is_empty() || !all.ends_with(&text) {
            let words = cause.downcast_ref().map_or(text, in_words);
            let colon = if all.is_empty() { "" } else { ": " };
            all = all + colon + &words;
        }
    }
    all
}

fn timed_out(
    node: &str,
    waited: Duration,
    obstacle: Option<&Obstacle>,
    program: &Program,
    request: Option<RequestContext<'_>>,
) -> (String, Option<String>) {
    let tried_once = waited.is_zero();
    let timed_out = timed_out_waiting(waited, &format!("node/{node}"));
    let is_not = |awaited: &str, how: &str| match tried_once {
        true => format!("node/{node} is not {awaited}: {how}"),
        false => format!("{timed_out} to be {awaited}: {how}"),
    };
    match (obstacle, request) {
        (Some(Obstacle::Refused(refused)), Some(request)) => {
            let request = RequestContext {
                waited: true,
                ..request
            };
            let (message, hint) = refusal::lines(refused, request);
            let cause = refusal::cause(refused, request);
            let message = match request.verb {
                _ if tried_once => message,
                Verb::Wait => format!("{timed_out} to be free: {cause}"),
                _ => format!("{timed_out}: {cause}"),
            };
            (message, Some(hint))
        }
        (Some(Obstacle::Refused(refused)), None) => (format!("{timed_out}: {refused}"), None),
        (
            Some(Obstacle::State {
                lease,
                now,
                awaited,
            }),
            request,
        ) => {
            let caller = request.map_or("", |request| request.caller);
            let state = node_state::state(lease.as_deref(), caller, *now);
            let node = [node.to_owned()];
            (
                is_not(&awaited.to_string(), &format!("it {state}")),
                Some(refusal::wait_for(*awaited, &node, program)),
            )
        }
        (Some(Obstacle::Remains(remains)), _) => {
            let (left, hint) = fencing::remaining_pods(node, remains, tried_once, program);
            let left = match tried_once {
                true => left,
                false => format!("timed out after {}: {left}", length(waited.into())),
            };
            (left, Some(hint))
        }
        (None, _) => (timed_out, None),
    }
}

/// The start of the message that a wait for `what` timed out.
pub(super) fn timed_out_waiting(waited: Duration, what: &str) -> String {
    format!(
        "timed out after {} waiting for {what}",
        length(waited.into())
    )
}

/// The state of the lock in `lease`, after a message about a lock id.
fn and_state(lease: &NodeLease, request: Option<RequestContext<'_>>) -> String {
    let Some(request) = request else {
        return String::new();
    };
    let state = node_state::state(Some(lease), request.caller, request.now);
    format!("; node/{} {state}", lease.node())
}

fn with_hint((message, hint): (String, String)) -> (String, Option<String>) {
    (message, Some(hint))
}

/// The same for a problem with the connection or the credentials; `None` for other failures.
fn of_connection(failure: &Failure) -> Option<(String, Option<String>)> {
    match failure {
        Failure::Lock(Error::Unknown { .. }) => None,
        failure => failed_request::words(failure.api()?),
    }
}
