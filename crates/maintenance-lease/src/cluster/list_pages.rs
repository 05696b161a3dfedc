//! Lists over namespaces, page by page: a cluster may have more Leases than fit into one answer.

use http::StatusCode;
use serde::Deserialize;

use super::api::Api;
use super::error::ApiError;
use super::requests::{Accept, Call, escape};
use crate::any_lease::{AnyLease, Candidate, HEARTBEATS, LeaseScope};

/// The most objects per page: as many as kubectl requests.
const PAGE: u32 = 500;

#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    metadata: ListMetadata,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    /// The continue token of the next page; empty after the last page.
    #[serde(default, rename = "continue")]
    next: String,
}

impl Api {
    /// The Leases in `scope`, in the server's order.
    pub(crate) async fn any_leases(
        &self,
        scope: LeaseScope<'_>,
    ) -> Result<Vec<AnyLease>, ApiError> {
        let path = path("v1", "leases", scope.namespace());
        let selection = match scope {
            LeaseScope::EverywhereButHeartbeats => {
                let others = format!("metadata.namespace!={HEARTBEATS}");
                format!("fieldSelector={}", escape(&others))
            }
            LeaseScope::Namespace(_) | LeaseScope::Everywhere => String::new(),
        };
        self.pages(&path, &selection, AnyLease::from_json).await
    }

    /// The candidates of coordinated elections, in the server's order; none if the server does not support such
    /// elections.
    pub(crate) async fn candidates(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<Candidate>, ApiError> {
        let path = path("v1beta1", "leasecandidates", namespace);
        match self.pages(&path, "", Candidate::from_json).await {
            Err(error) if error.is_not_installed() => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// The result of `read` for each object at `path`. If it takes so long that the server has forgotten the
    /// list of the first page, it starts over with a single page.
    async fn pages<T: Send>(
        &self,
        path: &str,
        selection: &str,
        read: impl Fn(&[u8]) -> Result<T, String> + Send + Sync,
    ) -> Result<Vec<T>, ApiError> {
        let mut kept = Vec::new();
        let mut query = page(selection, "");
        loop {
            let call = Call::get(format!("{path}?{query}"), Accept::Json);
            let listed = self
                .list(&call, "items", |item, _| {
                    kept.push(read(item).map_err(ApiError::Unreadable)?);
                    Ok(())
                })
                .await;
            let envelope = match listed {
                Ok(envelope) => envelope,
                Err(error) if error.is(StatusCode::GONE) && query != selection => {
                    kept.clear();
                    query = selection.to_owned();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let envelope: Envelope = serde_json::from_slice(&envelope)
                .map_err(|error| ApiError::Unreadable(error.to_string()))?;
            match &envelope.metadata.next[..] {
                "" => return Ok(kept),
                next => query = page(selection, next),
            }
        }
    }
}

/// The query of the page at the continue token `next`, or of the first page.
fn page(selection: &str, next: &str) -> String {
    let mut query = format!("limit={PAGE}");
    if !next.is_empty() {
        query.push_str(&format!("&continue={}", escape(next)));
    }
    if !selection.is_empty() {
        query.push('&');
        query.push_str(selection);
    }
    query
}

fn path(version: &str, plural: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map_or_else(String::new, |namespace| {
        format!("namespaces/{}/", escape(namespace))
    });
    format!("/apis/coordination.k8s.io/{version}/{namespace}{plural}")
}
