//! Why a node is not fenced, or stays fenced.

use std::time::Duration;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, Span};
use pod_safety::Why;
use pod_safety::fencing::record::{ANNOTATION, How};
use pod_safety::fencing::{Attempt, back, steps};
use pod_safety::node::Status;

use super::machine::another;
use super::retry::{RETRY, accepting, resume};
use crate::error::{Failure, Kind};
use crate::text::escape;
use crate::words::program::Program;
use crate::words::refusal::fenced;
use crate::words::time::{clock, length};

/// Why `node` is not fenced.
pub(crate) fn refusal(node: &str, refusal: &steps::Refusal, program: &Program) -> Failure {
    use steps::Refusal::{
        Alive, BackAlive, HeartbeatUnknown, MassLoss, NotCalledUnreachable, OtherMachine,
        Remediation, RemediationUnknown, ZoneUnknown,
    };
    match refusal {
        Alive(age) => unsafe_(
            format!(
                "cannot fence node/{node}: its kubelet is alive (last heartbeat {} ago)",
                length(*age)
            ),
            format!(
                "drain it: {} drain {node} --ignore-daemonsets; or power it off first",
                program.kubectl()
            ),
        ),
        BackAlive(age) => back_alive(node, *age, program),
        OtherMachine { proof, now } => another(node, proof, now),
        NotCalledUnreachable(status) => not_called_unreachable(node, *status, program),
        HeartbeatUnknown(why) => unsafe_(
            format!(
                "cannot fence node/{node}: unknown whether its kubelet is alive: {}",
                escape(&why.to_string())
            ),
            unknown_hint(node, why),
        ),
        MassLoss(zone) => unsafe_(
            format!(
                "cannot fence node/{node}: {}: {}",
                escape(&zone.to_string()),
                zone.suspicion()
            ),
            format!(
                "if you know that they are down, {}",
                accepting(program, "mass-loss")
            ),
        ),
        ZoneUnknown(why) => unsafe_(
            format!(
                "cannot fence node/{node}: unknown how many other nodes are unreachable: {}",
                escape(&why.to_string())
            ),
            format!(
                "if you know that they are up, {}",
                accepting(program, "zone-unknown")
            ),
        ),
        Remediation(who) => unsafe_(
            format!(
                "cannot fence node/{node}: another tool is already remediating it: {}",
                escape(who)
            ),
            "wait until it has finished, or stop it first".to_owned(),
        ),
        RemediationUnknown(why) => unsafe_(
            format!(
                "cannot fence node/{node}: unknown whether another tool is remediating it: {}",
                escape(&why.to_string())
            ),
            match why {
                Why::Forbidden(_) => format!(
                    "if you know that none is, {}",
                    accepting(program, "remediation-unknown")
                ),
                Why::NoAnswer(_) | Why::NotRead | Why::Untold(_) => RETRY.to_owned(),
            },
        ),
    }
}

/// A fenced node shows signs of life.
pub(crate) fn back_alive(node: &str, age: Span, program: &Program) -> Failure {
    unsafe_(
        format!(
            "node/{node} is fenced, but its kubelet is alive (last heartbeat {} ago)",
            length(age.max(Span::ZERO))
        ),
        format!("if it was restarted, run `{program} unfence {node}`; if not, power it off now"),
    )
}

/// The control plane has not marked `node` as unreachable; `None`: it reports nothing.
fn not_called_unreachable(node: &str, status: Option<Status>, program: &Program) -> Failure {
    let said = match status {
        Some(Status::False) => "is still False, set by its kubelet",
        Some(_) => "is still True",
        None => "is missing",
    };
    unsafe_(
        format!(
            "cannot fence node/{node}: Kubernetes does not report it unreachable yet: its Ready \
             condition {said}"
        ),
        format!(
            "wait until Ready is Unknown: {} wait node/{node} --for=condition=Ready=Unknown \
             --timeout=5m",
            program.kubectl()
        ),
    )
}

/// What to do if it is unknown whether `node` is alive, because of `why`.
fn unknown_hint(node: &str, why: &Why) -> String {
    match why {
        Why::Untold(_) => format!("set the clock of node/{node}, and check that its kubelet runs"),
        Why::Forbidden(_) => "see the role kubectl-maint-fencer in deploy/rbac.yaml".to_owned(),
        Why::NoAnswer(_) | Why::NotRead => RETRY.to_owned(),
    }
}

/// Why `node` stays fenced.
pub(crate) fn stays(node: &str, refusal: &back::Refusal, program: &Program) -> Failure {
    let accepting = || accepting(program, "boot-id");
    match refusal {
        back::Refusal::Silent => unsafe_(
            format!("cannot unfence node/{node}: it is still unreachable"),
            format!(
                "start it first, or let a hook start it with `{program} unfence {node} -- HOOK`"
            ),
        ),
        back::Refusal::Untainted => unsafe_(
            format!(
                "cannot unfence node/{node}: it is unreachable, and has the annotation {ANNOTATION} \
                 but no out-of-service taint"
            ),
            format!(
                "to remove the annotation: {} annotate node {node} {ANNOTATION}-",
                program.kubectl()
            ),
        ),
        back::Refusal::HeartbeatUnknown(why) => unsafe_(
            format!(
                "cannot unfence node/{node}: unknown whether its kubelet is alive: {}",
                escape(&why.to_string())
            ),
            unknown_hint(node, why),
        ),
        back::Refusal::Unrecorded => unsafe_(
            format!(
                "cannot unfence node/{node}: its out-of-service taint has no record, so earlier pods \
                 may still be running"
            ),
            format!("if you know that it was restarted, {}", accepting()),
        ),
        back::Refusal::NotRestarted(record) => unsafe_(
            format!(
                "cannot unfence node/{node}: it has not been restarted since {} fenced it ({}), so earlier \
                 pods may still be running",
                escape(&record.who),
                escape(&record.when)
            ),
            match record.how {
                How::Hook { isolated: true, .. } => format!(
                    "reboot it, or undo its isolation with `{program} unfence {node} -- HOOK`; to unfence it \
                     anyway, {}",
                    accepting()
                ),
                How::Hook { .. } | How::PoweredOff(_) => {
                    format!("reboot it first; to unfence it anyway, {}", accepting())
                }
            },
        ),
    }
}

/// `node` was fenced again while it was brought back.
pub(crate) fn fenced_anew(node: &str, program: &Program) -> Failure {
    unsafe_(
        format!(
            "cannot unfence node/{node}: it was fenced again during this command, or its record changed"
        ),
        format!("check who fenced it with `{program} status {node} -o wide`, then retry"),
    )
}

/// The lock of `node` may end before its hook does. The hook and its processes end within `needed`.
pub(crate) fn too_short(node: &str, rest: Span, needed: Duration, program: &Program) -> Failure {
    // The time for the writes before and after the hook.
    const MORE: Duration = Duration::from_secs(60);
    let minutes = (needed + MORE).as_secs().div_ceil(60);
    let lasting = match minutes {
        ..=60 => format!("{program} renew {node} --duration={minutes}m"),
        _ => format!("{program} hold {node} -m WHY"),
    };
    unsafe_(
        format!(
            "your lock on node/{node} has {} left, but the hook may take {}: nothing was changed",
            length(rest.max(Span::ZERO)),
            length(Span::from(needed))
        ),
        format!("keep the lock longer: {lasting}; or use a shorter --hook-timeout"),
    )
}

/// The hook of another run may still be running for `node`.
pub(crate) fn hook_running(node: &str, other: &Attempt, now: Instant) -> Failure {
    Failure::Hook {
        message: format!(
            "another hook may still be running for node/{node}: {} by {} (since {}, until {} at the \
             latest)",
            escape(&other.program),
            escape(&other.who),
            clock(other.since, now),
            clock(other.until, now)
        ),
        hint: format!(
            "wait for it to end; if that run was interrupted, {}",
            resume(&other.id)
        ),
        kind: Kind::Locked,
    }
}

/// The hold of a fencing, `lease`, must not be ended on its own.
pub(crate) fn hold_of_fencing(lease: &NodeLease, now: Now, program: &Program) -> Failure {
    unsafe_(
        fenced::message(lease, now),
        fenced::to_end(lease.node(), program),
    )
}

fn unsafe_(message: String, hint: String) -> Failure {
    Failure::Unsafe { message, hint }
}
