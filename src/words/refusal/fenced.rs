//! A refusal because of a fencing's hold: what the hold protects, and how to end it.

use maintenance_lease::protocol::{Now, Refusal, State};
use maintenance_lease::{NodeLease, Refused};
use pod_safety::fencing::is_of_fencing;

use crate::error::Verb;
use crate::words::hint_command::Program;
use crate::words::holder_name::person;
use crate::words::lock::about;
use crate::words::request::RequestContext;

/// The hold of a fencing that caused the refusal.
pub(in crate::words) fn hold<'r>(
    refused: &'r Refused,
    request: RequestContext<'_>,
) -> Option<&'r NodeLease> {
    let lease = refused.lease.as_ref()?;
    let keeps_off = matches!(
        refused.refusal,
        Refusal::AdminHold | Refusal::OwnHold | Refusal::NotHolder
    );
    (keeps_off && is_of_fencing(lease, request.now)).then_some(lease)
}

/// Until when such a hold lasts.
pub(crate) const UNTIL: &str = "until it is unfenced";

/// The state of a node with such a hold; the text precedes who fences it.
pub(crate) fn state(lease: &NodeLease) -> &'static str {
    match lease.is_fenced() {
        true => "is fenced, on hold by",
        false => "is being fenced, on hold by",
    }
}

/// Why only `unfence` may end the lock in `lease`, and what to do.
pub(crate) fn protected(lease: &NodeLease, now: Now, program: &Program) -> (String, String) {
    let node = lease.node();
    let (locked, hint) = match (is_of_fencing(lease, now), lease.state(now)) {
        (true, _) => (cause(lease, now), to_end(node, lease.is_fenced(), program)),
        (false, state) => {
            let locked = match state {
                State::AdminHold => "on hold",
                _ => "locked",
            };
            let about = about(lease, state, now);
            (
                format!("fenced, {locked} by {}{about}", person(lease)),
                format!(
                    "return the node to service first with `{}`",
                    program.run(format_args!("unfence {node}"))
                ),
            )
        }
    };
    (
        format!("cannot {} node/{node}: {locked}", program.verb()),
        hint,
    )
}

/// The same without the node.
pub(super) fn cause(lease: &NodeLease, now: Now) -> String {
    let state = state(lease);
    format!(
        "{} {} {UNTIL}{}",
        state.strip_prefix("is ").unwrap_or(state),
        person(lease),
        about(lease, State::AdminHold, now)
    )
}

/// How to end the hold of the fencing of `node`, which may not have fenced it.
pub(crate) fn to_end(node: &str, is_fenced: bool, program: &Program) -> String {
    let how = match is_fenced {
        true => "return the node to service and end the hold",
        false => "if its `fence` command no longer runs, end the hold",
    };
    format!(
        "{how} with `{}`",
        program.run(format_args!("unfence {node}"))
    )
}

/// The hint for `nodes`; `None` if the caller may work under the hold, or take it over.
pub(super) fn hint(
    refused: &Refused,
    lease: &NodeLease,
    nodes: &[String],
    request: RequestContext<'_>,
) -> Option<String> {
    let RequestContext { verb, program, .. } = request;
    let is_under = lease
        .holder()
        .is_some_and(|holder| program.is_under(holder));
    match verb {
        Verb::Fence | Verb::Unfence | Verb::Verify => return None,
        Verb::Acquire | Verb::With if is_under => return None,
        _ => {}
    }
    let to_end = match nodes {
        [node] => to_end(node, lease.is_fenced(), program),
        // It takes one node.
        _ => to_end("NODE", lease.is_fenced(), program),
    };
    // The condition in `to_end` must not seem to apply to the alternative.
    let or = if lease.is_fenced() { ", or" } else { "; or" };
    let waits = request.waited || program.waits();
    let place = program.place_of_flags();
    Some(match (refused.refusal, verb) {
        (Refusal::OwnHold, Verb::Acquire | Verb::With) => {
            format!("{to_end}{or} add --reentry{place} to keep working under it")
        }
        (Refusal::OwnHold, _) => to_end,
        (_, Verb::Hold) if !waits => {
            format!("{to_end}; if nobody works there, take it over: add --take-over{place}")
        }
        (_, Verb::Acquire | Verb::With) if !waits => {
            format!("{to_end}{or} add --wait{place} to wait for it")
        }
        _ => to_end,
    })
}
