//! Events on the Nodes, written after the outcome was printed: best effort, within a short time limit.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::protocol::State;
use maintenance_lease::{ApiError, Change, Done, NodeEvent, NodeLease, Sight};

use crate::error::Verb;
use crate::run::session::Session;
use crate::text::escape;
use crate::words::holder::person;
use crate::words::refusal::why;

/// The time limit for all of them.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// Posts `events`. If that fails, it prints one warning per command.
pub(crate) async fn post(session: &Session<'_>, events: Vec<NodeEvent>) {
    if events.is_empty() {
        return;
    }
    let posting = async {
        let events = on_their_nodes(session, events).await;
        session.locks.post_events(&events, LIMIT).await
    };
    let failed = tokio::time::timeout(LIMIT, posting).await;
    if let Some(error) = failed.unwrap_or(Some(ApiError::TimedOut(LIMIT))) {
        session.terminal.warn(format!(
            "could not post an Event on the node: {}",
            escape(&error.to_string())
        ));
    }
}

/// Adds the uid of their Node to `events`, because `kubectl describe node` does not show them without it.
/// If the Lease does not have it, for example because it was made by hand, the Node is read. Without
/// permission to read the Node, the Event has no uid. Events about a Node that is gone are dropped.
async fn on_their_nodes(session: &Session<'_>, mut events: Vec<NodeEvent>) -> Vec<NodeEvent> {
    let nameless: BTreeSet<String> = events
        .iter()
        .filter(|event| event.uid.is_empty())
        .map(|event| event.node.clone())
        .collect();
    let sights = join_all(nameless.into_iter().map(|node| async move {
        let sight = session.locks.see_node(&node).await;
        (node, sight)
    }));
    for (node, sight) in sights.await {
        match sight {
            Ok(Sight::Missing) => events.retain(|event| event.node != node),
            Ok(Sight::Row(row)) => events
                .iter_mut()
                .filter(|event| event.node == node)
                .for_each(|event| event.uid.clone_from(&row.uid)),
            _ => {}
        }
    }
    events
}

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
            "MaintenanceLockTakenOver",
            format!("{caller} {took} the maintenance {lock} of {before}{because}"),
            true,
        ));
    } else if change.done == Done::Acquired && matches!(change.state_before, State::Expired { .. })
    {
        events.push(event(
            "MaintenanceTakeover",
            format!("{caller} took over the expired maintenance lock of {before}"),
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
                "MaintenanceHold",
                format!("{caller} put the node on hold for maintenance{until}{reason}"),
                false,
            ));
        }
        (Verb::Unhold, Done::Released) if broken => events.push(event(
            "MaintenanceUnhold",
            format!("{caller} ended the maintenance hold of {before}"),
            true,
        )),
        (Verb::Unhold | Verb::Release, Done::Released)
            if change.state_before == State::AdminHold =>
        {
            events.push(event(
                "MaintenanceUnhold",
                format!("{caller} ended their maintenance hold{because}"),
                false,
            ));
        }
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
