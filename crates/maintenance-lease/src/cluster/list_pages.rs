//! Lists over namespaces, a page at a time: a cluster may have more Leases than one answer should.

use http::StatusCode;
use serde::Deserialize;

use super::api::Api;
use super::error::ApiError;
use super::requests::{Accept, Call, escape};
use crate::any_lease::{AnyLease, Candidate, HEARTBEATS, LeaseScope};

/// How many objects an answer brings at most: as many as kubectl asks for.
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
    /// The Leases of `realm`, in the server's order.
    pub(crate) async fn any_leases(
        &self,
        realm: LeaseScope<'_>,
    ) -> Result<Vec<AnyLease>, ApiError> {
        let path = path("v1", "leases", realm.namespace());
        let selection = match realm {
            LeaseScope::EverywhereButHeartbeats => {
                let others = format!("metadata.namespace!={HEARTBEATS}");
                format!("fieldSelector={}", escape(&others))
            }
            LeaseScope::Namespace(_) | LeaseScope::Everywhere => String::new(),
        };
        self.pages(&path, &selection, AnyLease::from_json).await
    }

    /// The candidates of coordinated elections, in the server's order; none if the server does
    /// not have such elections.
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

    /// What `read` makes of each object at `path`. Where it takes so long that the server no longer
    /// has the list that the first page was of, it begins again with all at once.
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

/// The query of the page that begins at `next`, or of the first.
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
