//! Checks of results.

use std::collections::BTreeMap;
use std::fmt;

use maintenance_lease::{Error, Followed, Follower, NodeLease, Refused};
use serde_json::Value;

/// The refusal in the result of a verb.
pub(crate) fn refusal<T: fmt::Debug>(result: Result<T, Error>) -> Refused {
    match result {
        Err(Error::Refused(refused)) => *refused,
        other => panic!("not a refusal: {other:?}"),
    }
}

/// The changed Leases in the next event of a follower.
pub(crate) async fn changed(follower: &mut Follower) -> BTreeMap<String, Option<NodeLease>> {
    match follower.next().await {
        Ok(Followed::Changed(leases)) => leases,
        other => panic!("no changes: {other:?}"),
    }
}

/// An annotation of ours on a Lease, or null.
pub(crate) fn annotation<'a>(lease: &'a Value, name: &str) -> &'a Value {
    &lease["metadata"]["annotations"][format!("kubectl-maint.dev/{name}")]
}
