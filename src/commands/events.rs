//! Events on the Nodes, left after the outcome was printed: best effort, for a moment at most.

use std::time::Duration;

use maintenance_lease::{Change, DryRun, NodeEvent};

use crate::session::Session;

/// How long they may take in all.
const LIMIT: Duration = Duration::from_secs(2);

/// Posts `events`, with one warning a command where that fails.
pub(crate) async fn post(session: &Session<'_>, events: Vec<NodeEvent>, dry_run: DryRun) {
    if events.is_empty() || dry_run != DryRun::None {
        return;
    }
    if let Some(error) = session.locks.post_events(&events, LIMIT).await {
        session.terminal.warn(format!(
            "no Event was left on the node, for who looks there later: {}",
            crate::terminal::escape(&error.to_string())
        ));
    }
}

/// The Event of a change.
pub(crate) fn of_change(
    change: &Change,
    reason: &'static str,
    message: String,
    warning: bool,
) -> NodeEvent {
    NodeEvent {
        node: change.node.clone(),
        uid: change
            .row
            .as_ref()
            .map(|row| row.uid.clone())
            .or_else(|| change.lease.as_ref()?.node_uid())
            .unwrap_or_default(),
        reason,
        message,
        warning,
    }
}
