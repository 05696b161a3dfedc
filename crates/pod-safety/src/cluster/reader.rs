//! Typed quorum reads of one object or of a list.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Accept, ApiError, Call, Requests, escape};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time;

use crate::constants::{HEARTBEAT_DURATION, HEARTBEATS};
use crate::node_health::Heartbeat;

/// Reads objects. Cheap to clone: clones share the connection, the estimate of the server's time, and the
/// heartbeats that they observed.
#[derive(Clone)]
pub struct Reader {
    requests: Requests,
    seen: Arc<Mutex<HashMap<String, ObservedHeartbeat>>>,
}

/// A heartbeat as this reader observed it.
#[derive(Clone, Copy)]
struct ObservedHeartbeat {
    /// The `renewTime` that the kubelet wrote, by the kubelet's clock.
    written: Instant,
    /// When the kubelet was last known to be alive: `written`, or the time at which the reader observed a
    /// change.
    alive: Instant,
}

impl ObservedHeartbeat {
    /// The heartbeat after it was read again at `now`. A change proves that the kubelet is alive, whatever
    /// its clock says.
    fn after(before: Option<Self>, written: Instant, now: Instant) -> Self {
        let alive = match before {
            Some(before) if before.written == written => before.alive,
            Some(_) => now,
            None => written,
        };
        Self { written, alive }
    }
}

/// The time between two reads of a heartbeat that is watched.
const EVERY: Duration = Duration::from_secs(1);

/// Where kubelets renew their heartbeats.
fn heartbeats_path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{HEARTBEATS}/leases")
}

/// The Lease of a kubelet, as far as it is read.
#[derive(Deserialize)]
struct KubeletLease {
    metadata: KubeletLeaseMetadata,
    #[serde(default)]
    spec: KubeletLeaseSpec,
}

#[derive(Deserialize)]
struct KubeletLeaseMetadata {
    /// The name of the Lease is that of the node.
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KubeletLeaseSpec {
    renew_time: Option<String>,
    lease_duration_seconds: Option<u32>,
}

impl KubeletLeaseSpec {
    /// `None` if the kubelet never renewed it. A time that can't be read must not fail the whole list: it is
    /// [`Instant::UNREADABLE`].
    fn heartbeat(&self) -> Option<Heartbeat> {
        let renewed = self.renew_time.as_ref()?.parse();
        Some(Heartbeat {
            at: renewed.map_or(Instant::UNREADABLE, |time: Timestamp| {
                Instant::from_micros(time.as_microsecond())
            }),
            duration: self
                .lease_duration_seconds
                .map_or(HEARTBEAT_DURATION, Span::seconds),
        })
    }
}

impl Reader {
    /// Creates a reader that sends its requests through `requests`, with their timeout.
    #[must_use]
    pub fn new(requests: Requests) -> Self {
        Self {
            requests,
            seen: Arc::default(),
        }
    }

    /// The [`Requests`] through which this reader sends.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The current server time.
    #[must_use]
    pub fn now(&self) -> Now {
        self.requests.server_time().now()
    }

    /// Sends `call` and parses the response.
    pub(super) async fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ApiError> {
        read(&self.requests.call(call).await?)
    }

    /// The object at `path`; `None` only if the server says that it does not exist.
    ///
    /// # Errors
    /// If the server refuses or fails, does not respond in time, or the response is not a `T`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ApiError> {
        let call = Call::get(path.to_owned(), Accept::Json);
        match self.send(&call).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of the collection at `path` that `query` selects. A query is for example
    /// `fieldSelector=spec.nodeName%3Dworker-1`; it may be empty.
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub async fn list<T: DeserializeOwned + Send>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<Vec<T>, ApiError> {
        self.select(path, query, Some).await
    }

    /// The results of `keep` for the objects of the collection at `path` that `query` selects. The whole list
    /// is never in memory.
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub async fn select<T: DeserializeOwned, U: Send>(
        &self,
        path: &str,
        query: &str,
        keep: impl FnMut(T) -> Option<U> + Send,
    ) -> Result<Vec<U>, ApiError> {
        self.pages(Accept::Json, path, query, keep).await
    }

    /// As [`select`](Self::select), but for the table rows that `kubectl get` prints.
    pub(super) async fn rows<T: DeserializeOwned, U: Send>(
        &self,
        path: &str,
        query: &str,
        keep: impl FnMut(T) -> Option<U> + Send,
    ) -> Result<Vec<U>, ApiError> {
        self.pages(Accept::Table, path, query, keep).await
    }

    async fn pages<T: DeserializeOwned, U: Send>(
        &self,
        accept: Accept,
        path: &str,
        query: &str,
        mut keep: impl FnMut(T) -> Option<U> + Send,
    ) -> Result<Vec<U>, ApiError> {
        let joint = if query.is_empty() { "" } else { "?" };
        let call = Call::get(format!("{path}{joint}{query}"), accept);
        let keep = |object: &[u8], _: &[u8]| Ok(keep(read(object)?));
        self.requests.list_pages(&call, keep).await
    }

    /// The heartbeat of each kubelet, by node name. A heartbeat whose time can't be read is at
    /// [`Instant::UNREADABLE`].
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub async fn heartbeats(&self) -> Result<HashMap<String, Heartbeat>, ApiError> {
        let call = Call::get(heartbeats_path(), Accept::Json);
        let listed = self.requests.list(&call, |lease, _| {
            let KubeletLease { metadata, spec } = read(lease)?;
            Ok(spec.heartbeat().map(|heartbeat| (metadata.name, heartbeat)))
        });
        Ok(listed.await?.objects.into_iter().collect())
    }

    /// Reads a Node; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub async fn node(&self, name: &str) -> Result<Option<Node>, ApiError> {
        self.get(&format!("/api/v1/nodes/{}", escape(name))).await
    }

    /// The heartbeat of the node's kubelet; `None` if it has none. If the heartbeat changed since an earlier
    /// read, its time is the current server time, because the kubelet's clock may be wrong.
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub async fn heartbeat(&self, node: &str) -> Result<Option<Heartbeat>, ApiError> {
        let path = format!("{}/{}", heartbeats_path(), escape(node));
        let lease: Option<KubeletLease> = self.get(&path).await?;
        let Some(read) = lease.and_then(|lease| lease.spec.heartbeat()) else {
            return Ok(None);
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.get(node).copied();
        let beat = ObservedHeartbeat::after(before, read.at, self.now().earliest);
        seen.insert(node.to_owned(), beat);
        Ok(Some(Heartbeat {
            at: beat.alive,
            ..read
        }))
    }

    /// Returns whether the heartbeat of `node` changes from `before`. Watches it for slightly longer than a
    /// live kubelet takes to renew it.
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub async fn heartbeat_changes(&self, node: &str, before: Heartbeat) -> Result<bool, ApiError> {
        let begun = time::Instant::now();
        while begun.elapsed() < before.watch_time() {
            time::sleep(EVERY).await;
            let now = self.heartbeat(node).await?;
            if now.is_some_and(|now| now.at != before.at) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(answer).map_err(|error| ApiError::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changing_heartbeat_means_alive_even_with_a_wrong_clock() {
        let at = Instant::from_micros;
        let first = ObservedHeartbeat::after(None, at(40), at(100));
        assert_eq!(first.alive, at(40));
        let unchanged = ObservedHeartbeat::after(Some(first), at(40), at(110));
        assert_eq!(unchanged.alive, at(40));
        let changed = ObservedHeartbeat::after(Some(unchanged), at(50), at(120));
        assert_eq!(changed.alive, at(120));
        let unchanged = ObservedHeartbeat::after(Some(changed), at(50), at(130));
        assert_eq!(unchanged.alive, at(120));
        // The kubelet's clock was set back, or is far ahead.
        assert_eq!(
            ObservedHeartbeat::after(Some(unchanged), at(10), at(140)).alive,
            at(140)
        );
        assert_eq!(
            ObservedHeartbeat::after(Some(unchanged), at(9_000), at(150)).alive,
            at(150)
        );
    }
}
