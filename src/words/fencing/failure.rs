//! Failures during a fencing, and what is unknown after them.

use std::fmt::Display;

use maintenance_lease::Error;
use maintenance_lease::protocol::{Instant, Span};
use pod_safety::fencing::Attempt;
use pod_safety::fencing::attempt::ANNOTATION;
use supervisor::Exit;

use super::retry::{RETRY, resume, resuming};
use crate::error::{Failure, FencingWrite, HookEnd, HookError};
use crate::text::escape;
use crate::words::failure::unanswered;
use crate::words::hint_command::Program;
use crate::words::keys::check_webhooks;
use crate::words::time::{clock, length};

/// What failed if a hook was not run.
pub(crate) const HOOK_NOT_RUN: &str = "could not run the hook";

/// A hook was asked to end, and did not.
pub(crate) const HOOK_STILL_RUNNING: &str =
    "the hook is still running; press Ctrl-C again to kill it; otherwise, it is killed within 10s";

/// A hook ended, and processes that it started may not have.
pub(crate) const PROCESSES_LEFT: &str =
    "could not end all processes of the hook; some may still be running";

/// It is unknown how a hook ends.
pub(crate) fn hook_not_followed(error: &impl Display) -> String {
    format!("could not wait for the hook to end: {error}")
}

/// Message and hint about a hook.
pub(crate) fn of_hook(error: &HookError, program: &Program) -> (String, String) {
    match error {
        HookError::Running { node, other, now } => (
            running(node, other, *now),
            match other.is_unreadable() {
                true => format!(
                    "if no hook runs for node/{node}, {}",
                    resume(program, &other.id)
                ),
                false => format!(
                    "wait for it to end; if that run was interrupted, {}",
                    resume(program, &other.id)
                ),
            },
        ),
        HookError::NotCordoned { node } => (
            format!(
                "node/{node} was not fenced: it could not be cordoned, so the hook was not run"
            ),
            format!("solve the problem above, then {RETRY}"),
        ),
        HookError::Failed {
            node,
            end,
            has_output,
        } => no_proof(
            node,
            &format!("the hook {}", how(*end)),
            *has_output,
            program,
        ),
        HookError::Interrupted { node, has_output } => {
            no_proof(node, "interrupted", *has_output, program)
        }
        HookError::StillUnreachable { node, waited } => (
            format!(
                "the hook succeeded, but node/{node} is still unreachable after {}: it stays fenced",
                length(Span::from(*waited))
            ),
            format!(
                "when it is back, run `{}`",
                program.run(format_args!("unfence {node}"))
            ),
        ),
        HookError::NodeGone { node } => (
            format!("the hook succeeded, but node/{node} was deleted: it is not in service"),
            "to use it again, register it: its fencing record, taint and hold were deleted with it"
                .to_owned(),
        ),
    }
}

/// The hook `other` may still be running for `node`.
fn running(node: &str, other: &Attempt, now: Instant) -> String {
    if other.is_unreadable() {
        return format!(
            "a hook may still be running for node/{node}: could not read its annotation {ANNOTATION}"
        );
    }
    format!(
        "a hook may still be running for node/{node}: {}, started by {} at {} (until {} at the latest)",
        escape(&other.program),
        escape(&other.who),
        clock(other.since, now),
        clock(other.until, now)
    )
}

/// The same for the operator who takes over the hold of its fencing. `is_fenced`: it is a hook of `unfence`.
pub(crate) fn taken_while_running(
    node: &str,
    is_fenced: bool,
    other: &Attempt,
    now: Instant,
    program: &Program,
) -> String {
    let verb = if is_fenced { "unfence" } else { "fence" };
    format!(
        "{}; once it has ended, continue with `{}`",
        running(node, other, now),
        program.run(format_args!("{verb} {node}{} -- HOOK", resuming(other)))
    )
}

/// The annotation of the hook `id` could not be removed from `node`.
pub(crate) fn hook_stays(node: &str, id: &str, failure: &Failure, program: &Program) -> String {
    format!(
        "could not remove the hook annotation from node/{node}: {}; to run another hook now, {}",
        escape(&failure.to_string()),
        resume(program, id)
    )
}

/// A read of `node` failed, and is retried.
pub(crate) fn unread(node: &str, failure: &str) -> String {
    format!("could not read node/{node}; retrying ({})", escape(failure))
}

/// Message and hint if somebody removed the record or the taint of a fencing while `fence` waited.
pub(crate) fn no_longer_fenced(node: &str, program: &Program) -> (String, String) {
    (
        format!(
            "node/{node} is no longer fenced: somebody removed its fencing record or its out-of-service taint"
        ),
        format!(
            "see its state with `{}`",
            program.run(format_args!("describe {node}"))
        ),
    )
}

/// Message and hint if the record of a fencing was written, and then it or the taint was removed again.
pub(crate) fn not_kept(node: &str, program: &Program) -> (String, String) {
    (
        format!(
            "node/{node} does not stay fenced: its fencing record or its out-of-service taint was removed each time \
             it was written, perhaps by an admission webhook; its lock is kept"
        ),
        format!("{}; then {RETRY}", check_webhooks(program)),
    )
}

/// Message and hint if the record or the taint is still there after the write that removes both.
pub(crate) fn stays(node: &str, program: &Program) -> (String, String) {
    (
        format!(
            "node/{node} is still fenced: its fencing record or its out-of-service taint is still there after the write \
             that removes both, perhaps because of an admission webhook; its lock is kept"
        ),
        format!("{}; then {RETRY}", check_webhooks(program)),
    )
}

fn no_proof(node: &str, why: &str, has_output: bool, program: &Program) -> (String, String) {
    let output = match has_output {
        true => "its output is above",
        false => "it printed nothing",
    };
    let state = match program.verb() {
        "unfence" => "is still fenced",
        _ => "was not fenced",
    };
    (
        format!("node/{node} {state}: {why}"),
        format!("check the machine of node/{node}: the hook may have changed it; {output}"),
    )
}

fn how(end: HookEnd) -> String {
    match end {
        HookEnd::TimedOut(limit) => format!("did not end within {}", length(Span::from(limit))),
        HookEnd::Exited(Exit::Code(code)) => format!("failed with exit code {code}"),
        HookEnd::Exited(Exit::Signal(signal)) => format!("was killed by {signal}"),
        HookEnd::Unknown => "ended with an unknown result".to_owned(),
    }
}

/// Message and hint if it is unknown whether `write` took effect, because of `why`.
pub(crate) fn unknown(
    node: &str,
    write: &FencingWrite,
    why: &Failure,
    program: &Program,
) -> (String, String) {
    let why = match why {
        Failure::InterruptedWrite { .. } => Failure::Interrupted.to_string(),
        Failure::Lock(Error::Unknown { source, .. }) => escape(&source.to_string()),
        Failure::UnknownWrite { error, .. } => unanswered(error.as_ref()),
        why => why.to_string(),
    };
    let unknown =
        |what: &str| format!("unknown whether {what}: the write may still take effect ({why})");
    let check = format!(
        "check with `{}`",
        program.run(format_args!("status {node}"))
    );
    match write {
        FencingWrite::Hold => (
            unknown(&format!("node/{node} was put on hold")),
            format!(
                "to continue, {RETRY}; to undo it, run `{}`",
                program.run(format_args!("unfence {node}"))
            ),
        ),
        FencingWrite::EndHold => (
            unknown(&format!("the hold on node/{node} was ended")),
            format!(
                "{check}; end it with `{}`",
                program.run(format_args!("unfence {node}"))
            ),
        ),
        // Named in the message that the annotation of the hook stays.
        FencingWrite::Hook => (
            "unknown whether it was written: the write may still take effect".to_owned(),
            check,
        ),
        FencingWrite::Record { hook } => (
            unknown(&format!("node/{node} was fenced")) + "; its lock is kept",
            match hook {
                Some(id) => format!("{check}; to continue, {}", resume(program, id)),
                None => format!("{check}; to continue, {RETRY}"),
            },
        ),
        FencingWrite::Return => (
            unknown(&format!("node/{node} was unfenced")),
            format!("{check}; to continue, {RETRY}"),
        ),
    }
}
