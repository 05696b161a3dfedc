//! Messages about the hold of a fencing.

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, NodeLease};

use super::failure::unknown;
use crate::error::Failure;
use crate::text::escape;
use crate::words::hint_command::Program;
use crate::words::holder_name::{of_node, person};

/// The prefix of the reason of a fencing's hold.
const MARK: &str = "fencing: ";

/// The longest reason of such a hold, in bytes. The record has the full reason.
const LONGEST_REASON: usize = 1000;

/// The reason of the hold of a node that is fenced because of `why`, if that was given: as `powered_off` says, else
/// with a hook of this name.
pub(crate) fn hold_reason(why: Option<&str>, powered_off: Option<&str>, hook: &str) -> String {
    let how = match powered_off {
        Some(how) => format!("powered off: {how}"),
        None => format!("with {hook}"),
    };
    let mut reason = match why {
        Some(why) => format!("{MARK}{why} ({how})"),
        None => format!("{MARK}{how}"),
    };
    let mut end = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.truncate(end);
    reason
}

/// `node` is on hold.
pub(crate) fn on_hold(node: &str) -> String {
    format!("node/{node} on hold until it is unfenced")
}

/// The hold on `node` was ended, or had ended before.
pub(crate) fn end_of_hold(node: &str, is_ended: bool) -> String {
    let how = if is_ended {
        "ended"
    } else {
        "was already ended"
    };
    format!("node/{node}: fencing hold {how}")
}

/// The Lease of `node` does not say whether the Node is fenced.
pub(crate) fn not_marked(node: &str, fenced: bool, failure: &Failure) -> String {
    let is = if fenced { "fenced" } else { "no longer fenced" };
    format!(
        "could not record in the Lease of node/{node} that it is {is}: {}",
        escape(&failure.to_string())
    )
}

/// The hold of an earlier run stays on `node`.
pub(crate) fn hold_stays(node: &str, program: &Program) -> String {
    format!(
        "node/{node} stays on hold: an earlier `fence` command was interrupted, and the result of its hook is \
         unknown; when the node is healthy, run `{}`",
        program.run(format_args!("unfence {node}"))
    )
}

/// The hook has succeeded, but `node` is not fenced until a risk is accepted.
pub(crate) fn kept_on_hold(node: &str, program: &Program) -> String {
    format!(
        "the hook succeeded, but node/{node} is not fenced: it stays on hold; to end the hold, run `{}`",
        program.run(format_args!("unfence {node}"))
    )
}

/// The lock of the fenced `node` was ended, and `person` has it now.
pub(crate) fn hold_lost(node: &str, person: &str) -> String {
    format!("the lock on node/{node} was lost: {person} has it now")
}

/// The lock of the fenced `node` was ended, and nobody has it now.
pub(crate) fn hold_ended(node: &str, lease: &NodeLease) -> String {
    let by = lease.released_by().or(lease.last_holder());
    let by = by.map(|by| format!(" by {}", of_node(by)));
    format!(
        "the lock on node/{node} was ended{}",
        by.unwrap_or_default()
    )
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
        "could not end the hold on node/{node}: {}; end it with `{unfence}`",
        escape(&failure.to_string()),
        unfence = program.run(format_args!("unfence {node}"))
    )
}

/// The hold on `node`, which is no longer fenced, could not be ended.
pub(crate) fn hold_left(node: &str, program: &Program) -> String {
    format!(
        "node/{node} is still on hold; end the hold with `{}`",
        program.run(format_args!("unfence {node}"))
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_hold_is_cut_between_letters() {
        assert_eq!(
            hold_reason(None, Some("its lights are off"), ""),
            "fencing: powered off: its lights are off"
        );
        assert_eq!(
            hold_reason(Some("fire"), None, "ipmi"),
            "fencing: fire (with ipmi)"
        );
        let long = hold_reason(Some(&"ü".repeat(600)), None, "");
        assert_eq!(long.len(), LONGEST_REASON - 1);
        assert!(long.ends_with('ü'));
    }
}
