//! Who waits for the lock of a node: Events about its Lease. Waiters renew them, and delete them at the end.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::Deserialize;
use serde_json::json;

use super::call::{Accept, Call};
use super::error::ApiError;
use super::events::{Event, path};
use super::requests::{Requests, escape};
use super::wire;
use crate::NAMESPACE;
use crate::lease::NodeLease;
use crate::protocol::{Instant, Span};

/// The reason of the Events.
const REASON: &str = "MaintenanceWaiting";

/// How often a waiter renews its Event.
pub const WAIT_EVENT_PERIOD: Duration = Duration::from_secs(60);

/// A waiter whose Event is older than this has ended without deleting it.
const STALE: Span = Span::seconds(150);

/// Somebody who waits for the lock of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The node's name.
    pub node: String,
    /// The waiter's identity, as they wrote it. It may have been cut.
    pub identity: String,
    /// Since when.
    pub since: Instant,
}

/// The Event of a wait.
#[derive(Debug)]
pub struct WaitEvent {
    path: String,
    count: u32,
}

/// What is read of an Event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    metadata: Metadata,
    event_time: Option<String>,
    series: Option<Series>,
    reporting_instance: Option<String>,
    regarding: Option<ObjectReference>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<String>,
}

impl Requests {
    /// Posts an Event which says that `identity` waits for the lock in `lease`, with this `note` for people. Call
    /// [`renew_wait_event`](Self::renew_wait_event) every [`WAIT_EVENT_PERIOD`], and at the end
    /// [`delete_wait_event`](Self::delete_wait_event).
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
    ) -> Result<WaitEvent, ApiError> {
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
        let answer = self.create_event(&event).await?;
        let posted: Read = serde_json::from_slice(&answer)
            .map_err(|error| ApiError::Unreadable(error.to_string()))?;
        Ok(WaitEvent {
            path: format!("{}/{}", path(NAMESPACE), escape(&posted.metadata.name)),
            count: 1,
        })
    }

    /// Records in `event` that the wait goes on.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not answer in time.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The event may still be changed.
    pub async fn renew_wait_event(&self, event: &mut WaitEvent) -> Result<(), ApiError> {
        event.count += 1;
        let series = json!({
            "count": event.count, "lastObservedTime": wire::print(self.time.now().latest),
        });
        let body = json!({ "series": series });
        let call = Call::write(
            Method::PATCH,
            event.path.clone(),
            "application/merge-patch+json",
            &body,
        );
        self.call(&call).await.map(drop)
    }

    /// Deletes `event`, because the wait has ended.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not answer in time.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The event may still be deleted.
    pub async fn delete_wait_event(&self, event: WaitEvent) -> Result<(), ApiError> {
        let call = Call {
            method: Method::DELETE,
            path: event.path,
            accept: Accept::Json,
            body: None,
        };
        self.call(&call).await.map(drop)
    }

    /// Who waits for the lock of `node`, or of all nodes: those who wait longest first. A waiter that was killed
    /// counts for up to 2.5 minutes.
    ///
    /// # Errors
    /// If the server refuses or fails, or does not answer in time.
    ///
    /// # Caveats
    /// Dropping this future changes nothing.
    pub async fn waiters(&self, node: Option<&str>) -> Result<Vec<Waiter>, ApiError> {
        let node = node.map(|node| format!(",regarding.name={node}"));
        let selector = format!("reason={REASON}{}", node.unwrap_or_default());
        let path = format!("{}?fieldSelector={}", path(NAMESPACE), escape(&selector));
        let call = Call::get(path, Accept::Json);
        let read = |event: &[u8], _: &[u8]| Ok(serde_json::from_slice::<Read>(event).ok());
        let events = self.list_pages(&call, read).await?;
        let now = self.time.now().earliest;
        let mut waiters: Vec<Waiter> = events
            .into_iter()
            .filter_map(|event| event.waiter(now))
            .collect();
        waiters.sort_by_key(|waiter| waiter.since);
        Ok(waiters)
    }
}

impl Read {
    /// The waiter, unless they have ended.
    fn waiter(self, now: Instant) -> Option<Waiter> {
        let since = wire::parse(&self.event_time?);
        let renewed = self.series.and_then(|series| series.last_observed_time);
        let seen = renewed.map_or(since, |time| wire::parse(&time));
        let is_stale = seen == Instant::UNREADABLE || seen + STALE < now;
        (!is_stale).then_some(Waiter {
            node: self.regarding?.name?,
            identity: self.reporting_instance?,
            since,
        })
    }
}
