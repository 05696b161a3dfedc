//! Reads before a decision: the node's Lease and a row about the Node, in parallel, always with a quorum (never
//! `resourceVersion=0`).

use std::collections::HashMap;

use futures::future::join;
use http::Method;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use k8s_openapi::apimachinery::pkg::version::Info;
use serde_json::json;

use super::api::Api;
use super::call::{Accept, Call};
use super::error::ApiError;
use super::items::close;
use super::nodes::{Columns, NodeRow, RowDetail};
use super::requests::escape;
use crate::any_lease::{AnyLease, Candidate, HEARTBEATS, LeaseScope};
use crate::lease::NodeLease;
use crate::protocol::{Now, check_finished};

/// A node and its Lease, as seen at one time.
#[derive(Clone, Debug)]
pub struct NodeAndLease {
    /// The node's name.
    pub node: String,
    /// What is known of the Node object.
    pub row: NodeLookup,
    /// Its maintenance Lease; `None`: there isn't one.
    pub lease: Option<NodeLease>,
}

impl NodeAndLease {
    /// The expired lock that its holder left in the middle of something, and its Node; `None` if it is not one.
    #[must_use]
    pub fn unfinished(&self, now: Now) -> Option<(&NodeLease, &NodeRow)> {
        let (row, lease) = (self.row.row()?, self.lease.as_ref()?);
        let finished = check_finished(lease.state(now), row.is_ready(), row.is_cordoned());
        finished.is_err().then_some((lease, row))
    }

    /// A Lease that is already known, for callers that don't read the Node.
    #[must_use]
    pub fn without_row(node: &str, lease: Option<NodeLease>) -> Self {
        Self {
            node: node.to_owned(),
            row: NodeLookup::Unread,
            lease,
        }
    }
}

/// What is known about a Node object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeLookup {
    /// It exists.
    Row(NodeRow),
    /// It does not exist.
    Missing,
    /// The user may not read Nodes.
    Forbidden,
    /// It was not read.
    Unread,
}

impl NodeLookup {
    /// The row, if there is one.
    #[must_use]
    pub fn row(&self) -> Option<&NodeRow> {
        match self {
            Self::Row(row) => Some(row),
            _ => None,
        }
    }

    /// The row, if there is one.
    #[must_use]
    pub fn into_row(self) -> Option<NodeRow> {
        match self {
            Self::Row(row) => Some(row),
            _ => None,
        }
    }
}

impl Api {
    /// The node's Lease and, if `with_node` is set and this repository is for Nodes, the Node's row.
    pub(crate) async fn read(&self, node: &str, with_node: bool) -> Result<NodeAndLease, ApiError> {
        let (row, lease) = join(
            async {
                if with_node && self.repository.locks_nodes() {
                    self.node_row(node).await
                } else {
                    Ok(NodeLookup::Unread)
                }
            },
            self.lease(node),
        )
        .await;
        Ok(NodeAndLease {
            node: node.to_owned(),
            lease: lease?,
            row: row?,
        })
    }

    /// The API user that the server takes the caller for.
    pub(crate) async fn api_user(&self) -> Result<UserInfo, ApiError> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview",
        });
        let call = Call::write(
            Method::POST,
            "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(),
            "application/json",
            &review,
        );
        let answer = self.call(&call).await?;
        let review: SelfSubjectReview = serde_json::from_slice(&answer)
            .map_err(|error| ApiError::Unreadable(error.to_string()))?;
        let status = review.status.and_then(|status| status.user_info);
        Ok(status.unwrap_or_default())
    }

    /// Whether the namespace of the Leases exists; `None`: the user may not read it.
    pub(crate) async fn has_namespace(&self) -> Result<Option<bool>, ApiError> {
        let path = format!("/api/v1/namespaces/{}", escape(self.repository.namespace()));
        match self.call(&Call::get(path, Accept::Json)).await {
            Ok(_) => Ok(Some(true)),
            Err(error) if error.is_not_found() => Ok(Some(false)),
            Err(error) if error.is_forbidden() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The server's version.
    pub(crate) async fn server_version(&self) -> Result<Info, ApiError> {
        let call = Call::get("/version".to_owned(), Accept::Json);
        serde_json::from_slice(&self.call(&call).await?)
            .map_err(|error| ApiError::Unreadable(error.to_string()))
    }

    /// The node's Lease; `None` only if the server says that it does not exist.
    pub(crate) async fn lease(&self, node: &str) -> Result<Option<NodeLease>, ApiError> {
        let call = Call::get(self.repository.path(Some(node)), Accept::Json);
        match self.call(&call).await {
            Ok(answer) => NodeLease::from_json(&answer, &self.repository)
                .map(Some)
                .map_err(ApiError::Unreadable),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The Node's row, with metadata.
    pub(crate) async fn node_row(&self, node: &str) -> Result<NodeLookup, ApiError> {
        let path = format!(
            "/api/v1/nodes/{}?{}",
            escape(node),
            RowDetail::Metadata.query()
        );
        match self.rows(path).await {
            Ok(mut rows) => match rows.pop() {
                Some(row) if row.name == node && rows.is_empty() => Ok(NodeLookup::Row(row)),
                _ => Err(ApiError::Unreadable(format!(
                    "the table of node {node} has not exactly its row"
                ))),
            },
            Err(error) if error.is_not_found() => Ok(NodeLookup::Missing),
            Err(error) if error.is_forbidden() => Ok(NodeLookup::Forbidden),
            Err(error) => Err(error),
        }
    }

    /// The rows of the Nodes that match a label selector, in the server's order.
    pub(crate) async fn node_rows(
        &self,
        selector: Option<&str>,
        detail: RowDetail,
    ) -> Result<Vec<NodeRow>, ApiError> {
        let selector = selector.map_or_else(String::new, |selector| {
            format!("&labelSelector={}", escape(selector))
        });
        self.rows(format!("/api/v1/nodes?{}{selector}", detail.query()))
            .await
    }

    async fn rows(&self, path: String) -> Result<Vec<NodeRow>, ApiError> {
        let mut columns = None;
        let call = Call::get(path, Accept::Table);
        let listed = self.list(&call, |row, before| {
            let columns = match columns {
                Some(columns) => columns,
                None => {
                    *columns.insert(Columns::read(&close(before)).map_err(ApiError::Unreadable)?)
                }
            };
            columns.row(row).map(Some).map_err(ApiError::Unreadable)
        });
        Ok(listed.await?.objects)
    }

    /// All Leases of the repository by name.
    pub(crate) async fn leases(&self) -> Result<HashMap<String, NodeLease>, ApiError> {
        let call = Call::get(self.repository.list_path(), Accept::Json);
        let listed = self.list(&call, |item, _| {
            let lease =
                NodeLease::from_json(item, &self.repository).map_err(ApiError::Unreadable)?;
            Ok(Some((lease.node.clone(), lease)))
        });
        Ok(listed.await?.objects.into_iter().collect())
    }

    /// The Leases in `scope`, in the server's order.
    pub(crate) async fn any_leases(
        &self,
        scope: LeaseScope<'_>,
    ) -> Result<Vec<AnyLease>, ApiError> {
        let mut path = coordination_path("v1", "leases", scope.namespace());
        if scope == LeaseScope::EverywhereButHeartbeats {
            let others = format!("metadata.namespace!={HEARTBEATS}");
            path.push_str(&format!("?fieldSelector={}", escape(&others)));
        }
        self.pages(path, AnyLease::from_json).await
    }

    /// The candidates of coordinated elections, in the server's order; none if the server does not support
    /// such elections.
    pub(crate) async fn candidates(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<Candidate>, ApiError> {
        let path = coordination_path("v1beta1", "leasecandidates", namespace);
        match self.pages(path, Candidate::from_json).await {
            Err(error) if error.is_not_installed() => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// The result of `read` for each object at `path`.
    async fn pages<T: Send>(
        &self,
        path: String,
        read: impl Fn(&[u8]) -> Result<T, String> + Send + Sync,
    ) -> Result<Vec<T>, ApiError> {
        let call = Call::get(path, Accept::Json);
        let read = |item: &[u8], _: &[u8]| read(item).map(Some).map_err(ApiError::Unreadable);
        self.list_pages(&call, read).await
    }
}

fn coordination_path(version: &str, plural: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map_or_else(String::new, |namespace| {
        format!("namespaces/{}/", escape(namespace))
    });
    format!("/apis/coordination.k8s.io/{version}/{namespace}{plural}")
}
