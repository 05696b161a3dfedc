//! The Events that commands post: what they say.

mod fencing;
mod force_deletion;

use maintenance_lease::protocol::State;
use maintenance_lease::{ApiError, Change, Done, NodeEvent, NodeLease};

pub(crate) use self::fencing::{fencing, unfencing};
pub(crate) use self::force_deletion::force_deletion;
use super::holder_name::person;
use super::lock::why;
use crate::error::Verb;
use crate::text::escape;

/// The reasons of the Events.
pub(crate) const HOLD: &str = "MaintenanceHold";
pub(crate) const UNHOLD: &str = "MaintenanceUnhold";
pub(crate) const TAKEN_OVER: &str = "MaintenanceLockTakenOver";
pub(crate) const EXPIRED_LOCK_ACQUIRED: &str = "MaintenanceExpiredLockAcquired";

/// The Events of a change by `caller`; `broken` if it ended another's lock, and the caller's reason for
/// that. A plain acquisition, renewal or release writes none.
pub(crate) fn of(
    change: &Change,
    verb: Verb,
    caller: &str,
    broken: bool,
    because: Option<&str>,
) -> Vec<NodeEvent> {
    let caller = escape(caller);
    let before = change.before.as_ref().map(person).unwrap_or_default();
    let lock = match change.state_before {
        State::AdminHold => "hold",
        _ => "lock",
    };
    let took = match verb {
        Verb::Release => "released",
        _ => "took over",
    };
    let because = because
        .filter(|because| !because.is_empty())
        .map(|because| format!(": \"{}\"", escape(because)))
        .unwrap_or_default();
    let event = |reason, message, warning| event(change, reason, message, warning);

    let mut events = Vec::new();
    if broken && (verb, change.done) != (Verb::Unhold, Done::Released) {
        events.push(event(
            TAKEN_OVER,
            format!("{caller} {took} the maintenance {lock} of {before}{because}"),
            true,
        ));
    } else if change.done == Done::Acquired && matches!(change.state_before, State::Expired { .. })
    {
        events.push(event(
            EXPIRED_LOCK_ACQUIRED,
            format!("{caller} acquired the node; the maintenance lock of {before} had expired"),
            true,
        ));
    }
    match (verb, change.done) {
        (Verb::Hold, Done::Acquired | Done::Renewed) => {
            let lease = change.lease.as_ref();
            let reason = lease.map(why).unwrap_or_default();
            let until = lease
                .and_then(NodeLease::hold_until)
                .map(|until| format!(", expected until {}", until.format("%F %T UTC")))
                .unwrap_or_default();
            events.push(event(
                HOLD,
                format!("{caller} put the node on hold for maintenance{until}{reason}"),
                false,
            ));
        }
        (Verb::Unhold, Done::Released) if broken => events.push(event(
            UNHOLD,
            format!("{caller} ended the maintenance hold of {before}"),
            true,
        )),
        (Verb::Unhold | Verb::Release, Done::Released)
            if change.state_before == State::AdminHold =>
        {
            events.push(event(
                UNHOLD,
                format!("{caller} ended their maintenance hold{because}"),
                false,
            ));
        }
        _ => {}
    }
    events
}

/// That `caller` begins to wait for the lock of `node`.
pub(crate) fn waits(caller: &str, node: &str) -> String {
    format!(
        "{} began to wait for the maintenance lock of node/{node}",
        escape(caller)
    )
}

/// The warning that an Event could not be posted.
pub(crate) fn not_posted(error: &ApiError) -> String {
    format!("could not post an Event: {}", escape(&error.to_string()))
}

fn event(change: &Change, reason: &'static str, message: String, warning: bool) -> NodeEvent {
    NodeEvent {
        node: change.node.clone(),
        uid: change
            .row
            .as_ref()
            .map(|row| row.uid.clone())
            .filter(|uid| !uid.is_empty())
            .or_else(|| change.lease.as_ref()?.node_uid())
            .unwrap_or_default(),
        reason,
        message,
        warning,
    }
}
