//! A fencing on its way: what was done, and what becomes of its hold.

use std::time::Duration;

use maintenance_lease::Error;
use maintenance_lease::protocol::{Refusal, Span};
use pod_safety::fencing::Record;

use crate::cli::program::Program;
use crate::failure::Failure;
use crate::report::refusal::person;
use crate::report::time::length;
use crate::terminal::escape;

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

/// After a hook, `node` is waited for, for so long.
pub(crate) fn awaited(node: &str, limit: Duration) -> String {
    let limit = length(Span::from(limit));
    format!("node/{node}: waiting up to {limit} until it is back")
}

/// A hook for `node` succeeded, and the run ended before that was recorded.
pub(crate) fn unrecorded(node: &str, isolated: bool) -> String {
    let state = if isolated { "cut off" } else { "off" };
    format!("the hook succeeded and was not recorded: by its word node/{node} is {state}")
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
