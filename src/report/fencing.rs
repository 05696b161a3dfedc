//! Fencing in words and as data: what stands against it, what is left, what was done.

use std::time::Duration;

use maintenance_lease::protocol::{Instant, Refusal, Span};
use maintenance_lease::{Error, NodeLease};
use pod_safety::Why;
use pod_safety::fencing::record::How;
use pod_safety::fencing::{Attempt, Record, Remains, back, steps};
use pod_safety::node::Status;
use pod_safety::words::few;
use serde::Serialize;

use super::item::API_VERSION;
use super::refusal::{person, why};
use super::time::{clock, length};
use crate::cli::output::Format;
use crate::cli::program::Program;
use crate::exit::Code;
use crate::failure::{Failure, Obstacle};
use crate::terminal::escape;

/// Which rights it takes to know.
const RIGHTS: &str = "deploy/rbac.yaml grants fencers what it takes to know";

/// Why `node` is not fenced.
pub(crate) fn refusal(node: &str, refusal: &steps::Refusal, program: &Program) -> Failure {
    use steps::Refusal::{
        Alive, BackAlive, HeartbeatUnknown, MassLoss, NotCalledSilent, Remediation,
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
        NotCalledSilent(status) => not_called_silent(node, *status),
        HeartbeatUnknown(why) => unsafe_(
            format!(
                "unknown whether node/{node} is alive: {}",
                escape(&why.to_string())
            ),
            RIGHTS.to_owned(),
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
pub(crate) fn hook_at_work(node: &str, other: &Attempt, now: Instant) -> Failure {
    Failure::Hook {
        message: format!(
            "a hook of {} may be at work on node/{node}: {} (since {}, until {} at the latest)",
            escape(&other.who),
            escape(&other.program),
            clock(other.since, now),
            clock(other.until, now)
        ),
        hint: "wait for it; where that run was broken off: the same again with --resume".to_owned(),
        code: Code::HELD,
    }
}

/// A hold of an earlier run's stays on `node`.
pub(crate) fn hold_stays(node: &str, program: &Program) -> String {
    format!(
        "node/{node} stays on hold: an earlier run was broken off, and what its hook did is not known; \
         once all is well: {program} unfence {node}"
    )
}

/// The hold of the fencing of `node` was ended, and `person` has it now.
pub(crate) fn hold_lost(node: &str, person: &str) -> String {
    format!("the hold of the fencing of node/{node} was ended: {person} has the node now")
}

/// The hold that a fencing took is not to be ended by itself: `lease`.
pub(crate) fn hold_of_fencing(lease: &NodeLease, program: &Program) -> Failure {
    let node = lease.node();
    unsafe_(
        format!(
            "node/{node} is on hold by {} until it is unfenced{}",
            person(lease),
            why(lease)
        ),
        format!(
            "to take the node back into service, which ends the hold: {program} unfence {node}"
        ),
    )
}

/// The hold that a run took on `node` could not be given back.
pub(crate) fn hold_not_ended(node: &str, failure: &Failure, program: &Program) -> String {
    if let Failure::Lock(Error::Refused(refused)) = failure
        && refused.refusal == Refusal::ChangedHands
        && let Some(lease) = &refused.lease
    {
        return hold_lost(node, &person(lease));
    }
    format!(
        "node/{node} stays on hold: {}; to end that: {program} unfence {node}",
        escape(&failure.to_string())
    )
}

/// A hook for `node` succeeded, and the run ended before that was recorded.
pub(crate) fn unrecorded(node: &str, isolated: bool) -> String {
    let state = if isolated { "cut off" } else { "off" };
    format!("the hook succeeded and was not recorded: by its word node/{node} is {state}")
}

/// The record of `node` was sent, and it is not known what became of it when the run ended.
pub(crate) fn record_open(node: &str, why: &Failure, program: &Program) -> Failure {
    Failure::OpenWrite {
        message: format!(
            "unknown whether node/{node} was fenced: its record may still be written ({}), and so its \
             lock stays",
            escape(&why.to_string())
        ),
        hint: format!("to see: {program} status {node}; to go on: the same again"),
        code: Code::of(why, None),
    }
}

/// `node` was to be taken back into service, and it is not known what became of it when the run ended.
pub(crate) fn return_open(node: &str, why: &Failure, program: &Program) -> Failure {
    Failure::OpenWrite {
        message: format!(
            "unknown whether node/{node} was unfenced: its record may still be removed ({})",
            escape(&why.to_string())
        ),
        hint: format!("to see: {program} status {node}; to go on: the same again"),
        code: Code::of(why, None),
    }
}

/// A hook for `node` did not succeed: `how`, behind "the hook".
pub(crate) fn hook_failed(node: &str, how: &str, output: &str) -> Failure {
    no_proof(node, &format!("the hook {how}"), output, Code::ERROR)
}

/// A hook for `node` was interrupted.
pub(crate) fn hook_interrupted(node: &str, output: &str) -> Failure {
    no_proof(node, "interrupted", output, Code::INTERRUPTED)
}

fn no_proof(node: &str, what: &str, output: &str, code: Code) -> Failure {
    let output = match output.is_empty() {
        true => "it printed nothing",
        false => "its output is above",
    };
    Failure::Hook {
        message: format!("{what}: nothing was changed in the cluster"),
        hint: format!("what the hook did to node/{node} is not known: {output}"),
        code,
    }
}

/// Why `node` stays fenced.
pub(crate) fn stays(node: &str, refusal: &back::Refusal, program: &Program) -> Failure {
    let insist = "--override=boot-id -m WHY";
    match refusal {
        back::Refusal::Silent => unsafe_(
            format!("node/{node} is still silent: it stays fenced"),
            format!("start it first, or give what does: {program} unfence {node} -- HOOK"),
        ),
        back::Refusal::HeartbeatUnknown(why) => unsafe_(
            format!(
                "unknown whether node/{node} is alive: {}",
                escape(&why.to_string())
            ),
            match why {
                Why::Untold(_) => "set its clock, and see that it renews its heartbeat".to_owned(),
                _ => RIGHTS.to_owned(),
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

/// After a hook, `node` is waited for, for so long.
pub(crate) fn awaited(node: &str, limit: Duration) -> String {
    let limit = length(Span::from(limit));
    format!("node/{node}: waiting up to {limit} until it is back")
}

/// A hook for `node` succeeded, and nobody heard of the node for as long as it was `waited` for.
pub(crate) fn silent_after_hook(node: &str, waited: Duration, program: &Program) -> Failure {
    let waited = length(Span::from(waited));
    Failure::Hook {
        message: format!(
            "the hook succeeded, but node/{node} gave no sign of life within {waited}: it stays fenced"
        ),
        hint: format!("once it is back: {program} unfence {node}"),
        code: Code::TIMED_OUT,
    }
}

/// A node that was fenced, and how, in a line.
pub(crate) fn fenced(node: &str, record: &Record, already: bool) -> String {
    let (who, how) = (escape(&record.who), escape(&record.how.to_string()));
    match already {
        true => format!(
            "node/{node} was fenced already by {who}, {how} (since {})",
            escape(&record.when)
        ),
        false => format!("node/{node} fenced by {who}, {how}"),
    }
}

/// How a node was fenced, for who is to undo it.
pub(crate) fn was_fenced(node: &str, record: &Record) -> String {
    let (who, how) = (escape(&record.who), escape(&record.how.to_string()));
    let when = escape(&record.when);
    let why = record.why.as_deref();
    let why = why.map_or_else(String::new, |why| format!(": \"{}\"", escape(why)));
    format!("node/{node} was fenced by {who} at {when}, {how}{why}")
}

/// What is left of a node.
pub(crate) fn left(node: &str, remains: &Remains) -> String {
    format!("node/{node}: waiting for {} to go", what(remains))
}

/// Something is left of a node when the time is over for which it was `waited`.
pub(crate) fn stuck(node: &str, remains: &Remains, waited: Duration) -> Failure {
    Failure::TimedOut {
        node: node.to_owned(),
        waited,
        obstacle: Some(Obstacle::Stands {
            how: still_there(node, remains),
            awaited: "empty",
        }),
    }
}

fn still_there(node: &str, remains: &Remains) -> String {
    let finalized = match &remains.finalized[..] {
        [] => String::new(),
        pods => format!("; held by finalizers: {}", list(pods)),
    };
    let are = match remains.pods.len() + remains.attachments.len() {
        1 => "is",
        _ => "are",
    };
    format!(
        "node/{node} is fenced, and {} {are} left{finalized}; run it again to follow on",
        what(remains)
    )
}

/// Which pods stay where they are.
pub(crate) fn tolerating(remains: &Remains) -> String {
    let volumes = match &remains.staying[..] {
        [] => String::new(),
        volumes => format!("; its volumes stay attached: {}", list(volumes)),
    };
    format!(
        "left where it is, by tolerating the taint or coming from a file: {}{volumes}",
        list(&remains.tolerating)
    )
}

/// Why it is not known which volumes stay with the pods that do.
pub(crate) fn unsure(node: &str, why: &Why) -> String {
    format!(
        "unknown which volumes of node/{node} stay attached for pods that stay there: {}",
        escape(&why.to_string())
    )
}

fn what(remains: &Remains) -> String {
    let parts = [
        (&remains.pods, "pod"),
        (&remains.attachments, "volume attachment"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, noun)| format!("{} ({})", count(names.len(), noun), list(names)))
        .collect();
    parts.join(" and ")
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

fn list(names: &[String]) -> String {
    escape(&few(names))
}

fn unsafe_(message: String, hint: String) -> Failure {
    Failure::Unsafe { message, hint }
}

/// The outcome as data: the versioned shape of `-o json` and `-o yaml`, which `docs/json.md` documents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fencing<'a> {
    api_version: &'static str,
    kind: &'static str,
    node: &'a str,
    /// Nothing was done: so it would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    /// It is out of service by our record.
    fenced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
    /// Pods that stay, as NAMESPACE/NAME.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tolerating: &'a [String],
    /// What still has to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Left<'a>>,
}

/// What still has to go from a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Left<'a> {
    /// As NAMESPACE/NAME.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pods: &'a [String],
    /// Of these, the ones that finalizers keep.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    held_by_finalizers: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    volume_attachments: &'a [String],
}

impl<'a> Fencing<'a> {
    /// A node that is fenced, and has nothing left on it but `remains`.
    pub(crate) fn fenced(node: &'a str, record: &'a Record, remains: &'a Remains) -> Self {
        Self {
            fenced: true,
            record: Some(record),
            tolerating: &remains.tolerating,
            left: (!remains.is_over()).then_some(Left {
                pods: &remains.pods,
                held_by_finalizers: &remains.finalized,
                volume_attachments: &remains.attachments,
            }),
            ..Self::unfenced(node)
        }
    }

    /// A node that is in service again.
    pub(crate) fn unfenced(node: &'a str) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "Fencing",
            node,
            dry_run: false,
            fenced: false,
            record: None,
            tolerating: &[],
            left: None,
        }
    }

    /// The same, as it would be after what a dry run only says.
    pub(crate) fn in_dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// It in the form that was asked for; `None` where that is words.
    ///
    /// # Errors
    /// Where it can't be written in that form.
    pub(crate) fn print(&self, format: Format) -> Result<Option<String>, Failure> {
        let unprintable = |error: &dyn std::fmt::Display| {
            Failure::input(format!("the result can't be printed: {error}"))
        };
        Ok(match format {
            Format::Text | Format::Wide | Format::Token => None,
            Format::Name => Some(format!("node/{}", self.node)),
            Format::Json => {
                Some(serde_json::to_string_pretty(self).map_err(|error| unprintable(&error))?)
            }
            Format::Yaml => {
                let text = serde_saphyr::to_string(self).map_err(|error| unprintable(&error))?;
                Some(text.trim_end().to_owned())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_and_named() {
        let names = |count: usize| (0..count).map(|n| format!("shop/web-{n}")).collect();
        let remains = Remains {
            pods: names(7),
            attachments: vec!["csi-1".to_owned()],
            finalized: names(1),
            ..Remains::default()
        };
        assert_eq!(
            left("worker-1", &remains),
            "node/worker-1: waiting for 7 pods (shop/web-0, shop/web-1, shop/web-2, shop/web-3, \
             shop/web-4 and 2 more) and 1 volume attachment (csi-1) to go"
        );
        assert!(
            still_there("worker-1", &remains)
                .contains("are left; held by finalizers: shop/web-0; run it again")
        );
        let one = Remains {
            pods: names(1),
            ..Remains::default()
        };
        assert!(still_there("worker-1", &one).contains("1 pod (shop/web-0) is left; run it again"));
    }
}
