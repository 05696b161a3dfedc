//! Why a node is not fenced, or stays so.

use std::time::Duration;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, Span};
use pod_safety::Why;
use pod_safety::fencing::record::{ANNOTATION, How};
use pod_safety::fencing::{Attempt, back, steps};
use pod_safety::node::Status;

use super::machine::another;
use crate::error::Failure;
use crate::exit::Code;
use crate::text::escape;
use crate::words::program::Program;
use crate::words::refusal::fenced;
use crate::words::rights::TO_JUDGE;
use crate::words::time::{clock, length};

/// Why `node` is not fenced.
pub(crate) fn refusal(node: &str, refusal: &steps::Refusal, program: &Program) -> Failure {
    use steps::Refusal::{
        Alive, BackAlive, HeartbeatUnknown, MassLoss, NotCalledSilent, OtherMachine, Remediation,
        RemediationUnknown, ZoneUnknown,
    };
    match refusal {
        Alive(age) => unsafe_(
            format!(
                "node/{node} is alive: its kubelet gave a sign of life {} ago",
                length(*age)
            ),
            "a live kubelet ends its pods by itself: kubectl drain; power it off first to fence it"
                .to_owned(),
        ),
        BackAlive(age) => back_alive(node, *age, program),
        OtherMachine { proof, now } => another(node, proof, now, program),
        NotCalledSilent(status) => not_called_silent(node, *status),
        HeartbeatUnknown(why) => unsafe_(
            format!(
                "unknown whether node/{node} is alive: {}",
                escape(&why.to_string())
            ),
            TO_JUDGE.to_owned(),
        ),
        MassLoss(zone) => unsafe_(
            format!(
                "{} of {} nodes{} are silent: it may be the control plane that is cut off",
                zone.silent,
                zone.nodes,
                zone.name
                    .as_ref()
                    .map(|name| format!(" of zone {}", escape(name)))
                    .unwrap_or_default()
            ),
            "where you know that they are down: --override=mass-loss -m WHY".to_owned(),
        ),
        ZoneUnknown(why) => unsafe_(
            format!(
                "unknown how many other nodes are silent: {}",
                escape(&why.to_string())
            ),
            "where you know that they are well: --override=zone-unknown -m WHY".to_owned(),
        ),
        Remediation(who) => unsafe_(
            format!("node/{node} is being remediated already: {}", escape(who)),
            "wait for that to end, or stop it first".to_owned(),
        ),
        RemediationUnknown(why) => unsafe_(
            format!(
                "unknown whether another tool remediates node/{node}: {}",
                escape(&why.to_string())
            ),
            match why {
                Why::Forbidden(_) => {
                    "where you know that none does: --override=remediation-unknown -m WHY"
                        .to_owned()
                }
                Why::NoAnswer(_) | Why::NotRead | Why::Untold(_) => "try again".to_owned(),
            },
        ),
    }
}

/// A node that was fenced gives signs of life.
pub(crate) fn back_alive(node: &str, age: Span, program: &Program) -> Failure {
    unsafe_(
        format!(
            "node/{node} was fenced and is alive: its kubelet gave a sign of life {} ago",
            length(age.max(Span::ZERO))
        ),
        format!("where it was restarted: {program} unfence {node}; else power it off"),
    )
}

/// What the control plane says of `node` is not that it is silent; `None`: it says nothing.
fn not_called_silent(node: &str, status: Option<Status>) -> Failure {
    let (said, hint) = match status {
        Some(Status::False) => (
            "its kubelet called it not ready (Ready is False)",
            "wait until Ready is Unknown; power it off to get there",
        ),
        Some(_) => (
            "its Ready condition is still True",
            "wait until Ready is Unknown: before that nothing would follow",
        ),
        None => (
            "it has no Ready condition",
            "wait a minute: nobody hears of it once Ready is Unknown",
        ),
    };
    unsafe_(
        format!("the control plane has not called node/{node} silent: {said}"),
        hint.to_owned(),
    )
}

/// Why `node` stays fenced.
pub(crate) fn stays(node: &str, refusal: &back::Refusal, program: &Program) -> Failure {
    let insist = "--override=boot-id -m WHY";
    match refusal {
        back::Refusal::Silent => unsafe_(
            format!("node/{node} is still silent: it stays fenced"),
            format!("start it first, or give what does: {program} unfence {node} -- HOOK"),
        ),
        back::Refusal::Untainted => unsafe_(
            format!(
                "node/{node} is not fenced, and silent: the annotation {ANNOTATION} stays, though no \
                 out-of-service taint is there"
            ),
            format!(
                "to see: {program} status {node} -o wide; to take it away: kubectl annotate node {node} \
                 {ANNOTATION}-"
            ),
        ),
        back::Refusal::HeartbeatUnknown(why) => unsafe_(
            format!(
                "unknown whether node/{node} is alive: {}",
                escape(&why.to_string())
            ),
            match why {
                Why::Untold(_) => "set its clock, and see that it renews its heartbeat".to_owned(),
                _ => TO_JUDGE.to_owned(),
            },
        ),
        back::Refusal::Unrecorded => unsafe_(
            format!(
                "node/{node} has an out-of-service taint that nobody recorded: what ran there before \
                 may still run"
            ),
            format!("where you know that it was restarted: {insist}"),
        ),
        back::Refusal::NotRestarted(record) => unsafe_(
            format!(
                "node/{node} was not restarted since {} fenced it ({}): what ran there may still run",
                escape(&record.who),
                escape(&record.when)
            ),
            match record.how {
                How::Hook { isolated: true, .. } => format!(
                    "reboot it, or undo its isolation: {program} unfence {node} -- HOOK; else {insist}"
                ),
                How::Hook { .. } | How::PoweredOff(_) => {
                    format!("it was not off, or its boot ID is odd: reboot it, or {insist}")
                }
            },
        ),
    }
}

/// `node` was fenced again while it was brought back.
pub(crate) fn fenced_anew(node: &str, program: &Program) -> Failure {
    unsafe_(
        format!("node/{node} was fenced anew meanwhile, or its record changed: it stays fenced"),
        format!("look who did, then run it again: {program} status {node}"),
    )
}

/// The lease that `node` is locked by may end before its hook does, which with all that it started
/// ends within `needed`.
pub(crate) fn too_short(node: &str, rest: Span, needed: Duration, program: &Program) -> Failure {
    // What the writes before and behind the hook may take.
    const MORE: Duration = Duration::from_secs(60);
    let minutes = (needed + MORE).as_secs().div_ceil(60);
    let lasting = match minutes {
        ..=60 => format!("{program} renew {node} --duration={minutes}m"),
        _ => format!("{program} hold {node} -m WHY"),
    };
    unsafe_(
        format!(
            "your lease on node/{node} has {} left, and the hook may take {}: nothing was changed",
            length(rest.max(Span::ZERO)),
            length(Span::from(needed))
        ),
        format!("first: {lasting}; or give a shorter --hook-timeout"),
    )
}

/// The hook of another run may be at work on `node`.
pub(crate) fn hook_at_work(
    node: &str,
    other: &Attempt,
    now: Instant,
    program: &Program,
) -> Failure {
    Failure::Hook {
        message: format!(
            "a hook of {} may be at work on node/{node}: {} (since {}, until {} at the latest)",
            escape(&other.who),
            escape(&other.program),
            clock(other.since, now),
            clock(other.until, now)
        ),
        hint: format!(
            "wait for it; where that run was broken off: {}",
            program.whole(node, "--resume")
        ),
        code: Code::HELD,
    }
}

/// The hold that a fencing took is not to be ended by itself: `lease`.
pub(crate) fn hold_of_fencing(lease: &NodeLease, now: Now, program: &Program) -> Failure {
    unsafe_(
        fenced::message(lease, now),
        fenced::to_end(lease.node(), program),
    )
}

fn unsafe_(message: String, hint: String) -> Failure {
    Failure::Unsafe { message, hint }
}
