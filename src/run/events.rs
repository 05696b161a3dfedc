//! Events on the Nodes, sent after the outcome was printed: best effort, within a short time limit.

use std::collections::BTreeSet;

use futures::future::join_all;
use maintenance_lease::{ApiError, NodeEvent, NodeLookup};

use super::background::LIMIT;
use super::session::Session;
use crate::ui::Terminal;
use crate::words::event;

/// Posts `events`. If that fails, it prints one warning per command.
pub(crate) async fn post(session: &Session<'_>, events: Vec<NodeEvent>) {
    if events.is_empty() {
        return;
    }
    let posting = async {
        let events = on_their_nodes(session, events).await;
        session.locks.post_events(&events, LIMIT).await
    };
    wait_for(session.terminal, posting).await;
}

/// Waits until Events are posted, but not long. `posting` returns why one could not be: that is one warning per command.
pub(crate) async fn wait_for(terminal: &Terminal, posting: impl Future<Output = Option<ApiError>>) {
    let failed = tokio::time::timeout(LIMIT, posting).await;
    if let Some(error) = failed.unwrap_or(Some(ApiError::TimedOut(LIMIT))) {
        terminal.warn(event::not_posted(&error));
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
    let lookups = join_all(nameless.into_iter().map(|node| async move {
        let lookup = session.locks.node(&node).await;
        (node, lookup)
    }));
    for (node, lookup) in lookups.await {
        match lookup {
            Ok(NodeLookup::Missing) => events.retain(|event| event.node != node),
            Ok(NodeLookup::Row(row)) => events
                .iter_mut()
                .filter(|event| event.node == node)
                .for_each(|event| event.uid.clone_from(&row.uid)),
            _ => {}
        }
    }
    events
}
