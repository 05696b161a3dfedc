//! Typed reads: one object, or a list page by page, always from a quorum.

use std::collections::HashMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{Accept, ApiError, Call, Requests, escape};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::constants::HEARTBEATS;
use crate::wire::micro_instant;

/// As many objects come in one answer at most, so that no answer outlasts the limit of a request.
const PAGE: usize = 500;

/// Reads objects. Cheap to clone; clones share the connection and the estimate of the server's time.
#[derive(Clone)]
pub struct Reader {
    requests: Requests,
}

/// A page of a list, less its items.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue", default)]
    next: String,
}

/// A heartbeat, read so that one odd time spoils no list.
#[derive(Deserialize)]
struct Heartbeat {
    metadata: HeartbeatMetadata,
    #[serde(default)]
    spec: HeartbeatSpec,
}

#[derive(Deserialize)]
struct HeartbeatMetadata {
    name: String,
}

#[derive(Default, Deserialize)]
struct HeartbeatSpec {
    #[serde(rename = "renewTime", default)]
    renew_time: Option<serde_json::Value>,
}

impl Reader {
    /// Reads by `requests`, within their limit each.
    #[must_use]
    pub fn new(requests: Requests) -> Self {
        Self { requests }
    }

    /// The way that its requests go.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The present, in server time.
    #[must_use]
    pub fn now(&self) -> Now {
        self.requests.server_time().now()
    }

    /// Sends `call`, and reads its answer.
    pub(super) async fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ApiError> {
        read(&self.requests.call(call).await?)
    }

    /// The object at `path`; `None` only if the server says that it does not exist.
    ///
    /// # Errors
    /// If the server refuses or fails, nothing comes in time, or it is no `T`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ApiError> {
        let call = Call::get(path.to_owned(), Accept::Json);
        match self.send(&call).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of the collection at `path` that `query` selects, such as
    /// `fieldSelector=spec.nodeName%3Dworker-1`; it may be empty.
    ///
    /// # Errors
    /// As [`get`](Self::get); also where a list took so long that its continuation expired (410).
    pub async fn list<T: DeserializeOwned + Send>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<Vec<T>, ApiError> {
        let mut objects = Vec::new();
        self.each(path, query, |object| objects.push(object))
            .await?;
        Ok(objects)
    }

    /// Hands every object of the collection at `path` that `query` selects to `each`, as the pages come
    /// in: none is kept.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn each<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
        each: impl FnMut(T) + Send,
    ) -> Result<(), ApiError> {
        self.each_of(Accept::Json, "items", path, query, each).await
    }

    /// Hands every element of `array` in the answers to `each`.
    pub(super) async fn each_of<T: DeserializeOwned>(
        &self,
        accept: Accept,
        array: &'static str,
        path: &str,
        query: &str,
        mut each: impl FnMut(T) + Send,
    ) -> Result<(), ApiError> {
        let joint = if query.is_empty() { "" } else { "&" };
        let first = format!("{path}?limit={PAGE}{joint}{query}");
        let mut next = String::new();
        loop {
            let call = Call::get(format!("{first}{next}"), accept);
            let listed = self.requests.list(&call, array, |object, _| {
                each(read(object)?);
                Ok(())
            });
            let page: Page = read(&listed.await?)?;
            if page.metadata.next.is_empty() {
                return Ok(());
            }
            next = format!("&continue={}", escape(&page.metadata.next));
        }
    }

    /// When each node's kubelet last renewed its heartbeat, by node; one whose time can't be read is
    /// [`Instant::UNREADABLE`].
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn heartbeats(&self) -> Result<HashMap<String, Instant>, ApiError> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{HEARTBEATS}/leases");
        let mut heartbeats = HashMap::new();
        self.each(&path, "", |lease: Heartbeat| {
            let renewed = lease.spec.renew_time.map(|time| {
                serde_json::from_value(time)
                    .map_or(Instant::UNREADABLE, |time| micro_instant(&time))
            });
            heartbeats.extend(renewed.map(|renewed| (lease.metadata.name, renewed)));
        })
        .await?;
        Ok(heartbeats)
    }

    /// The Node; `None` if there is none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn node(&self, name: &str) -> Result<Option<Node>, ApiError> {
        self.get(&format!("/api/v1/nodes/{}", escape(name))).await
    }

    /// When the node's kubelet last renewed its heartbeat; `None` if it has none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn heartbeat(&self, node: &str) -> Result<Option<Instant>, ApiError> {
        let path = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{HEARTBEATS}/leases/{}",
            escape(node)
        );
        let lease: Option<Lease> = self.get(&path).await?;
        Ok(lease
            .and_then(|lease| lease.spec?.renew_time)
            .map(|time| micro_instant(&time)))
    }
}

pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(answer).map_err(|error| ApiError::Unreadable(error.to_string()))
}
