//! Events on the Nodes, left after the outcome was printed: best effort, for a moment at most.

use std::time::Duration;

use maintenance_lease::protocol::State;
use maintenance_lease::{Change, Done, NodeEvent, NodeLease};

use crate::report::refusal::{person, why};
use crate::report::verb::Verb;
use crate::session::Session;
use crate::terminal::escape;

/// How long they may take in all.
const LIMIT: Duration = Duration::from_secs(2);

/// Posts `events`, with one warning a command where that fails.
pub(crate) async fn post(session: &Session<'_>, events: &[NodeEvent]) {
    if events.is_empty() {
        return;
    }
    if let Some(error) = session.locks.post_events(events, LIMIT).await {
        session.terminal.warn(format!(
            "no Event was left on the node, for who looks there later: {}",
            escape(&error.to_string())
        ));
    }
}

/// The Events of a change by `caller`; `broken` where it took another's lock away, and the caller's
/// words about that. A plain acquisition, renewal or release leaves none.
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
        _ => "lease",
    };
    let because = because
        .filter(|because| !because.is_empty())
        .map(|because| format!(": \"{}\"", escape(because)))
        .unwrap_or_default();
    let event = |reason, message, warning| event(change, reason, message, warning);

    let mut events = Vec::new();
    if broken && (verb, change.done) != (Verb::Unhold, Done::Released) {
        events.push(event(
            "MaintenanceLockBroken",
            format!("{caller} broke the maintenance {lock} of {before}{because}"),
            true,
        ));
    }
    if change.done == Done::Acquired && matches!(change.state_before, State::Expired { .. }) {
        events.push(event(
            "MaintenanceTakeover",
            format!("{caller} took the maintenance lock over the expired lease of {before}"),
            true,
        ));
    }
    match (verb, change.done) {
        (Verb::Hold, Done::Acquired | Done::Renewed) => {
            let lease = change.lease.as_ref();
            let reason = lease.map(why).unwrap_or_default();
            let until = lease
                .and_then(NodeLease::hold_until)
                .map(|until| format!(", meant until {}", until.format("%F %T UTC")))
                .unwrap_or_default();
            events.push(event(
                "MaintenanceHold",
                format!("{caller} holds the node for maintenance{until}{reason}"),
                false,
            ));
        }
        (Verb::Unhold, Done::Released) if broken => events.push(event(
            "MaintenanceUnhold",
            format!("{caller} ended the maintenance hold of {before}"),
            true,
        )),
        (Verb::Unhold, Done::Released) => events.push(event(
            "MaintenanceUnhold",
            format!("{caller} ended their maintenance hold"),
            false,
        )),
        _ => {}
    }
    events
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
