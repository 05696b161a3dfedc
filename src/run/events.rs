//! Events on the Nodes and messages to a webhook, sent after the outcome was printed: best effort, within a short time limit.

use std::collections::BTreeSet;

use connect::ApiUser;
use futures::future::join_all;
use futures::join;
use maintenance_lease::protocol::identity;
use maintenance_lease::{ApiError, Change, Done, NodeEvent, NodeLease, NodeLookup};

use super::background::LIMIT;
use super::session::Session;
use super::webhook;
use crate::error::Verb;
use crate::output::data::Time;
use crate::output::notice::{Event, Notice};
use crate::ui::Terminal;
use crate::words::event;

/// What is to be said of the changes of a command.
#[derive(Default)]
pub(crate) struct Announcements {
    events: Vec<NodeEvent>,
    notices: Vec<Notice>,
}

impl Announcements {
    /// Adds those of `change`; `broken` if it ended another's lock, and the caller's reason for that.
    pub(crate) fn add(
        &mut self,
        session: &Session<'_>,
        change: &Change,
        verb: Verb,
        broken: bool,
        because: Option<&str>,
    ) {
        let events = event::of(change, verb, session.locks.identity(), broken, because);
        let announced: Vec<_> = events
            .iter()
            .filter_map(|event| Some((for_webhook(event)?, &*event.message)))
            .collect();
        // A hold that takes over another is one message.
        if let Some(event) = announced.iter().map(|(event, _)| *event).max() {
            let texts: Vec<&str> = announced.iter().map(|(_, text)| *text).collect();
            self.notices.push(Notice {
                text: texts.join("; "),
                event,
                ..notice(session, change, because)
            });
        }
        self.events.extend(events);
    }

    /// Sends them all.
    pub(crate) async fn send(self, session: &Session<'_>) {
        let posting = post(session, self.events);
        join!(posting, webhook::send(session, self.notices));
    }

    /// Drops those about nodes for which `is_wanted` is false.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.events.retain(|event| is_wanted(&event.node));
        self.notices
            .retain(|notice| notice.nodes.iter().all(|node| is_wanted(node)));
    }
}

/// The kind of message about `posted`; `None`: the webhook gets none.
fn for_webhook(posted: &NodeEvent) -> Option<Event> {
    match posted.reason {
        event::HOLD => Some(Event::Hold),
        event::TAKEN_OVER | event::EXPIRED_LOCK_ACQUIRED => Some(Event::Takeover),
        // Of another.
        event::UNHOLD if posted.warning => Some(Event::Takeover),
        _ => None,
    }
}

/// What a message says of `change`.
fn notice(session: &Session<'_>, change: &Change, because: Option<&str>) -> Notice {
    let begins = matches!(change.done, Done::Acquired | Done::Renewed);
    let lease = change.lease.as_ref().filter(|_| begins);
    let previous = change.before.as_ref().and_then(NodeLease::holder);
    let previous = previous.map(identity::person);
    let caller = session.locks.identity();
    let until = lease.and_then(NodeLease::hold_until);
    Notice {
        nodes: vec![change.node.clone()],
        holder: caller.to_owned(),
        api_user: match &session.connection.api_user {
            ApiUser::Known(name) => Some(name.clone()),
            _ => None,
        },
        previous_holder: previous
            .filter(|previous| *previous != caller)
            .map(ToOwned::to_owned),
        reason: match lease {
            Some(lease) => lease.reason(),
            None => because,
        }
        .map(ToOwned::to_owned),
        ticket: lease.and_then(NodeLease::ticket).map(ToOwned::to_owned),
        expected_until: until.map(Time::from),
        ..webhook::notice(session)
    }
}

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
