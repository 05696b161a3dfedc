//! What becomes of the hold of a fencing.

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, NodeLease};

use crate::error::{Failure, Fate};
use crate::text::escape;
use crate::words::holder::person;
use crate::words::program::Program;

/// `node` could not be put on hold. Where that may still be written, it says how to see and to end it.
pub(crate) fn not_held(node: &str, failure: Failure, program: &Program) -> Failure {
    let what =
        format!("unknown whether node/{node} was put on hold: the write may still take effect");
    let hint = format!(
        "to continue: {}; to undo it: {program} unfence {node}",
        program.whole(node, "")
    );
    open_or_as_it_is(failure, &what, hint)
}

/// The hold on `node` could not be ended. Where that may still be written, it says how to see and what
/// ends it for certain.
pub(crate) fn not_ended(node: &str, failure: Failure, program: &Program) -> Failure {
    let what = format!(
        "unknown whether the hold on node/{node} was ended: the write may still take effect"
    );
    let hint = format!("to check: {program} status {node}; to end it: {program} unfence {node}");
    open_or_as_it_is(failure, &what, hint)
}

/// `what` in place of a `failure` that leaves a write open, else that itself.
fn open_or_as_it_is(failure: Failure, what: &str, hint: String) -> Failure {
    if failure.fate() != Fate::Open {
        return failure;
    }
    let why = match &failure {
        Failure::InterruptedWrite { .. } => Failure::Interrupted.to_string(),
        Failure::Lock(Error::Unknown { source, .. }) => source.to_string(),
        other => other.to_string(),
    };
    Failure::OpenWrite {
        message: format!("{what} ({})", escape(&why)),
        hint,
        kind: failure.kind(None),
    }
}

/// A hold of an earlier run's stays on `node`.
pub(crate) fn hold_stays(node: &str, program: &Program) -> String {
    format!(
        "node/{node} stays on hold: an earlier fence was interrupted, and the result of its hook is \
         unknown; when the node is well: {program} unfence {node}"
    )
}

/// The hold of the fencing of `node` was ended, and `person` has it now.
pub(crate) fn hold_lost(node: &str, person: &str) -> String {
    format!("the fencing hold on node/{node} was lost: {person} has the node now")
}

/// The hold that a run took on `node` could not be given back.
pub(crate) fn hold_not_ended(node: &str, failure: &Failure, program: &Program) -> String {
    if let Some(lease) = taken_by(failure) {
        return hold_lost(node, &person(lease));
    }
    if let Failure::OpenWrite { message, hint, .. } = failure {
        return format!("{message}; {hint}");
    }
    format!(
        "could not end the hold on node/{node}: {}; to end it: {program} unfence {node}",
        escape(&failure.to_string())
    )
}

/// The hold on `node`, which is not fenced any more, could not be ended.
pub(crate) fn hold_left(node: &str, program: &Program) -> String {
    format!("node/{node} is still on hold; to end the hold: {program} unfence {node}")
}

/// What stands in place of a hold that was to be ended, where that is why it was not.
pub(crate) fn taken_by(failure: &Failure) -> Option<&NodeLease> {
    match failure {
        Failure::Lock(Error::Refused(refused)) if refused.refusal == Refusal::ChangedHands => {
            refused.lease.as_ref()
        }
        _ => None,
    }
}
