//! Tells the holder of a lock who waits for it: an Event when the wait begins.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use maintenance_lease::{Blocked, NodeLease, Requests};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::background::{self, LIMIT};
use super::session::Session;
use crate::words::event;

/// A shorter wait leaves no Event.
const SHORT: Duration = Duration::from_secs(2);

/// The nodes that this command has waited for. Nothing is sent to them. Dropping it ends the wait.
#[derive(Default)]
pub(super) struct WaitNotice {
    nodes: BTreeMap<String, oneshot::Sender<Infallible>>,
}

impl WaitNotice {
    /// The command waits for the node in `blocked`.
    pub(super) fn waits(&mut self, session: &Session<'_>, blocked: &Blocked) {
        let node = &blocked.refused.node;
        let is_known = self.nodes.contains_key(node);
        let Some(lease) = blocked.refused.lease.clone().filter(|_| !is_known) else {
            return;
        };
        let (ends, ended) = oneshot::channel();
        self.nodes.insert(node.clone(), ends);
        let requests = session.locks.requests().clone();
        let identity = session.locks.identity().to_owned();
        background::spawn(notify(requests, lease, identity, ended));
    }
}

/// Posts the Event, unless the wait ends soon. Without the right to do that, nobody sees who waits, and the wait is the same.
async fn notify(
    requests: Requests,
    lease: NodeLease,
    identity: String,
    mut ended: oneshot::Receiver<Infallible>,
) {
    if timeout(SHORT, &mut ended).await.is_ok() {
        return;
    }
    let note = event::waits(&identity, lease.node());
    let _ = timeout(LIMIT, requests.post_wait_event(&lease, &identity, &note)).await;
}
