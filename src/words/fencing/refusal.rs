//! Why a node is not fenced, or stays fenced.

use std::time::Duration;

use maintenance_lease::protocol::Span;
use pod_safety::Why;
use pod_safety::facts::node::POSSIBLE_CAUSE;
use pod_safety::fencing::{steps, unfencing};
use pod_safety::node_health::Status;

use super::machine::another;
use super::progress::not_known;
use super::remains::{count, list};
use super::retry::{RETRY, accepting};
use crate::error::FencingRefusal;
use crate::text::escape;
use crate::words::hint_command::Program;
use crate::words::missing_right;
use crate::words::refusal::fenced;
use crate::words::time::length;

/// Nothing shows that the suspect `node` has stopped reporting.
fn still_reports(node: &str, waited: Duration, program: &Program) -> (String, String) {
    let waited = length(Span::from(waited));
    (
        format!(
            "node/{node} was not fenced: after {waited}, nothing shows that it has stopped reporting, so it may not be off"
        ),
        format!(
            "it stays on hold; check the machine, then {RETRY} with a --timeout of more than a minute; or end the hold \
             with `{}`",
            program.run(format_args!("unfence {node}"))
        ),
    )
}

/// Message and hint.
pub(crate) fn refusal(refusal: &FencingRefusal, program: &Program) -> (String, String) {
    match refusal {
        FencingRefusal::Fence { node, why } => not_fenced(node, why, program),
        FencingRefusal::Unfence { node, why } => unfence_refused(node, why, program),
        FencingRefusal::StillReports { node, waited } => still_reports(node, *waited, program),
        FencingRefusal::FencedAgain { node } => (
            format!(
                "cannot unfence node/{node}: it was fenced again during this command, or its record changed"
            ),
            format!(
                "check who fenced it with `{}`, then {RETRY}",
                program.run(format_args!("status {node} -o wide"))
            ),
        ),
        FencingRefusal::ShortLock { node, left, needed } => {
            too_short(node, *left, *needed, program)
        }
        FencingRefusal::EndLock { lock, now } => fenced::protected(lock, *now, program),
    }
}

/// Why `node` is not fenced.
fn not_fenced(node: &str, refusal: &steps::Refusal, program: &Program) -> (String, String) {
    use steps::Refusal::{
        Alive, BackAlive, HeartbeatUnknown, HookRunning, LockLost, MassLoss, NoOwner,
        NotCalledUnreachable, OtherMachine, Remediation, Unread,
    };
    let cannot = || {
        let risk = risk(refusal).unwrap_or_default();
        format!("cannot fence node/{node}: {risk}")
    };
    match refusal {
        Alive(age) => (
            format!(
                "cannot fence node/{node}: its kubelet is alive (last heartbeat {} ago)",
                length(*age)
            ),
            format!(
                "drain it with `{}`; if it hangs although it reports, fence it with `{}`",
                program.kubectl(format_args!("drain {node} --ignore-daemonsets")),
                program.run(format_args!("fence {node} --suspect -- HOOK"))
            ),
        ),
        BackAlive(age) => back_alive(node, *age, program),
        OtherMachine { proof, now } => another(node, proof, now),
        NotCalledUnreachable(status) => not_called_unreachable(node, *status, program),
        HeartbeatUnknown(why) => (
            format!(
                "cannot fence node/{node}: unknown whether its kubelet is alive: {}",
                escape(&why.to_string())
            ),
            unknown_hint(node, why),
        ),
        // The command reports it as a failure of a hook.
        HookRunning(_) => (
            format!("cannot fence node/{node}: another hook is running"),
            RETRY.to_owned(),
        ),
        LockLost => (
            format!(
                "cannot fence node/{node}: its lock was ended during this command, so somebody else may \
                 have changed the machine"
            ),
            format!(
                "check who ended it with `{}`, then {RETRY}",
                program.run(format_args!("describe {node}"))
            ),
        ),
        MassLoss(_) => (
            cannot(),
            format!(
                "if you know that node/{node} is off, {}",
                accepting(program, "mass-loss")
            ),
        ),
        Remediation(who) => (
            format!(
                "cannot fence node/{node}: another tool is already repairing it: {}",
                escape(who)
            ),
            "wait until it has finished, or stop it first".to_owned(),
        ),
        Unread(unread) => (
            cannot(),
            match unread.iter().all(steps::Unread::is_acceptable) {
                true => format!("to fence it anyway, {}", accepting(program, "unread")),
                false => RETRY.to_owned(),
            },
        ),
        NoOwner(_) => (
            cannot(),
            format!("to fence it anyway, {}", accepting(program, "no-owner")),
        ),
    }
}

/// The risk behind a refusal, if it can be accepted, or could be if something were known.
pub(crate) fn risk(refusal: &steps::Refusal) -> Option<String> {
    match refusal {
        steps::Refusal::MassLoss(zone) => {
            Some(format!("{}: {POSSIBLE_CAUSE}", escape(&zone.to_string())))
        }
        steps::Refusal::Unread(unread) => Some(all_unread(unread)),
        steps::Refusal::NoOwner(pods) => Some(format!(
            "nothing recreates {} ({})",
            count(pods.len(), "pod"),
            list(pods)
        )),
        _ => None,
    }
}

/// What could not be read of a node, and why.
fn all_unread(unread: &[steps::Unread]) -> String {
    let all: Vec<String> = { unread.iter() }.map(|one| not_known("it", one)).collect();
    all.join("; ")
}

/// The kubelet of a fenced node is alive.
fn back_alive(node: &str, age: Span, program: &Program) -> (String, String) {
    (
        format!(
            "node/{node} is fenced, but its kubelet is alive (last heartbeat {} ago)",
            length(age.max(Span::ZERO))
        ),
        format!(
            "if it was restarted, run `{}`; if not, power it off now",
            program.run(format_args!("unfence {node}"))
        ),
    )
}

/// The control plane has not marked `node` as unreachable; `None`: it reports nothing.
fn not_called_unreachable(
    node: &str,
    status: Option<Status>,
    program: &Program,
) -> (String, String) {
    let said = match status {
        Some(Status::False) => "is still False, set by its kubelet",
        Some(_) => "is still True",
        None => "is missing",
    };
    (
        format!(
            "cannot fence node/{node}: Kubernetes does not report it unreachable yet: its Ready \
             condition {said}"
        ),
        format!(
            "wait until Ready is Unknown: `{}`",
            program.kubectl(format_args!(
                "wait node/{node} --for=condition=Ready=Unknown --timeout=5m"
            ))
        ),
    )
}

/// What to do if it is unknown whether `node` is alive, because of `why`.
fn unknown_hint(node: &str, why: &Why) -> String {
    match why {
        Why::Inconclusive(_) => {
            format!("set the clock of node/{node}, and check that its kubelet runs")
        }
        Why::Forbidden(right) => missing_right::permission(right),
        Why::NoAnswer(_) | Why::NotRead => RETRY.to_owned(),
    }
}

/// Why `node` stays fenced.
fn unfence_refused(
    node: &str,
    refusal: &unfencing::Refusal,
    program: &Program,
) -> (String, String) {
    let accepting = || accepting(program, "boot-id");
    match refusal {
        unfencing::Refusal::Unreachable => (
            format!("cannot unfence node/{node}: it is still unreachable"),
            format!(
                "start it first, or let a hook start it with `{}`",
                program.run(format_args!("unfence {node} -- HOOK"))
            ),
        ),
        unfencing::Refusal::HeartbeatUnknown(why) => (
            format!(
                "cannot unfence node/{node}: unknown whether its kubelet is alive: {}",
                escape(&why.to_string())
            ),
            unknown_hint(node, why),
        ),
        unfencing::Refusal::Unrecorded => (
            format!(
                "cannot unfence node/{node}: it has no readable record of a fencing, so earlier pods \
                 may still be running"
            ),
            format!("if you know that it was restarted, {}", accepting()),
        ),
        unfencing::Refusal::NotRestarted(record) => {
            let reboot = match record.how.is_isolated() {
                true => format!(
                    "reboot it, or undo its isolation with `{}`",
                    program.run(format_args!("unfence {node} -- HOOK"))
                ),
                false => "reboot it first".to_owned(),
            };
            (
                format!(
                    "cannot unfence node/{node}: it is not known to have been restarted since {} fenced it ({}), so earlier \
                     pods may still be running",
                    escape(&record.who),
                    escape(&record.when)
                ),
                format!("{reboot}; to unfence it anyway, {}", accepting()),
            )
        }
    }
}

/// The lock of `node` may end before its hook does. The hook and its processes end within `needed`.
fn too_short(node: &str, rest: Span, needed: Duration, program: &Program) -> (String, String) {
    (
        format!(
            "your lock on node/{node} has {} left, but the hook may take {}: nothing was changed",
            length(rest.max(Span::ZERO)),
            length(Span::from(needed))
        ),
        format!(
            "put the node on hold with `{}`, or use a shorter --hook-timeout",
            program.run(format_args!("hold {node} -m WHY"))
        ),
    )
}
