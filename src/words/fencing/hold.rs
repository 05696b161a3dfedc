//! Messages about the hold of a fencing.

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, NodeLease};

use super::failure::unknown;
use crate::error::Failure;
use crate::text::escape;
use crate::words::holder::person;
use crate::words::program::Program;

/// The hold of an earlier run stays on `node`.
pub(crate) fn hold_stays(node: &str, program: &Program) -> String {
    format!(
        "node/{node} stays on hold: an earlier fence was interrupted, and the result of its hook is \
         unknown; when the node is well, run `{program} unfence {node}`"
    )
}

/// The hold of the fencing of `node` was ended, and `person` holds the lock now.
pub(crate) fn hold_lost(node: &str, person: &str) -> String {
    format!("the fencing hold on node/{node} was lost: {person} has the lock now")
}

/// The hold that this run took on `node` could not be released.
pub(crate) fn hold_not_ended(node: &str, failure: &Failure, program: &Program) -> String {
    if let Some(lease) = taken_by(failure) {
        return hold_lost(node, &person(lease));
    }
    if let Failure::UnknownFencing { node, write, why } = failure {
        let (message, hint) = unknown(node, write, why, program);
        return format!("{message}; {hint}");
    }
    format!(
        "could not end the hold on node/{node}: {}; end it with `{program} unfence {node}`",
        escape(&failure.to_string())
    )
}

/// The hold on `node`, which is no longer fenced, could not be ended.
pub(crate) fn hold_left(node: &str, program: &Program) -> String {
    format!("node/{node} is still on hold; end the hold with `{program} unfence {node}`")
}

/// The lock that replaced a hold, if that is why the hold could not be ended.
pub(crate) fn taken_by(failure: &Failure) -> Option<&NodeLease> {
    match failure {
        Failure::Lock(Error::Refused(refused)) if refused.refusal == Refusal::ChangedHands => {
            refused.lease.as_ref()
        }
        _ => None,
    }
}
