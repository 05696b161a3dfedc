//! Who waits for the lock of a node: Events about its Lease. A waiter writes one when the wait begins. The server keeps
//! Events for an hour, by default.

use k8s_openapi::api::core::v1::ObjectReference;
use serde::Deserialize;

use super::call::{Accept, Call};
use super::error::ApiError;
use super::events::{Event, path};
use super::requests::{Requests, escape};
use super::wire;
use crate::NAMESPACE;
use crate::lease::NodeLease;
use crate::protocol::Instant;

/// The reason of the Events.
const REASON: &str = "MaintenanceWaiting";

/// Somebody who began to wait for the lock of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The waiter's identity, as they wrote it. It may have been cut.
    pub identity: String,
    /// When they began to wait.
    pub since: Instant,
}

/// What is read of an Event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    event_time: Option<String>,
    reporting_instance: Option<String>,
}

impl Requests {
    /// Posts an Event which says that `identity` begins to wait for the lock in `lease`, with this `note` for people.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not answer in time.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The event may still be stored.
    pub async fn post_wait_event(
        &self,
        lease: &NodeLease,
        identity: &str,
        note: &str,
    ) -> Result<(), ApiError> {
        let regarding = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            name: Some(lease.node().to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            uid: Some(lease.uid().to_owned()),
            ..ObjectReference::default()
        };
        let event = Event {
            regarding: &regarding,
            reason: REASON,
            note,
            warning: false,
            reporter: "kubectl-maint",
            instance: identity,
        };
        self.post_event(&event).await
    }

    /// Who began to wait for the lock of `node` lately, and when they did so last: the first one first. They may have
    /// ended since.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not answer in time.
    ///
    /// # Caveats
    /// Dropping this future changes nothing.
    pub async fn waiters(&self, node: &str) -> Result<Vec<Waiter>, ApiError> {
        let selector = format!("reason={REASON},regarding.name={node}");
        let path = format!("{}?fieldSelector={}", path(NAMESPACE), escape(&selector));
        let call = Call::get(path, Accept::Json);
        let read = |event: &[u8], _: &[u8]| Ok(serde_json::from_slice::<Read>(event).ok());
        let events = self.list_pages(&call, read).await?;
        let mut all: Vec<Waiter> = events.into_iter().filter_map(Read::waiter).collect();
        all.sort_by_key(|waiter| waiter.since);
        let mut latest: Vec<Waiter> = Vec::new();
        for waiter in all {
            latest.retain(|earlier| earlier.identity != waiter.identity);
            latest.push(waiter);
        }
        Ok(latest)
    }
}

impl Read {
    fn waiter(self) -> Option<Waiter> {
        let since = wire::parse(&self.event_time?);
        let identity = self.reporting_instance?;
        (since != Instant::UNREADABLE).then_some(Waiter { identity, since })
    }
}
