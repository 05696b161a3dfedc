//! The API server's record of who wrote a Lease, and when. The lease policy dates Leases by it.

use http::Method;
use serde_json::json;

use super::Maintenance;
use crate::any_lease::AnyLease;
use crate::cluster::call::Call;
use crate::cluster::error::ApiError;
use crate::cluster::requests::escape;
use crate::notes::annotation::REPAIRED;

/// It owns only the annotation.
const FIELD_MANAGER: &str = "kubectl-maint-repair";

impl Maintenance {
    /// Gives a Lease that [lacks it](AnyLease::lacks_managed_fields) a record of its writes, by a server-side apply of an
    /// annotation. The lock does not change. Nothing is written to other Leases.
    ///
    /// # Errors
    /// If the Lease can't be written, or has changed since it was read.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The annotation may still be written.
    pub async fn restore_managed_fields(&self, lease: &AnyLease) -> Result<(), ApiError> {
        if !lease.lacks_managed_fields() {
            return Ok(());
        }
        self.requests().call(&apply(lease)).await.map(drop)
    }
}

fn apply(any: &AnyLease) -> Call {
    let (namespace, name) = (escape(&any.namespace), escape(any.name()));
    let applied = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": any.name(),
            // With the uid, a Lease that was deleted meanwhile is not created again.
            "uid": any.lease.uid(),
            "resourceVersion": any.lease.resource_version().to_string(),
            "annotations": {REPAIRED: "true"},
        },
    });
    Call::write(
        Method::PATCH,
        format!(
            "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}?fieldManager={FIELD_MANAGER}"
        ),
        "application/apply-patch+yaml",
        &applied,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_the_annotation_of_the_lease_that_was_read_is_applied() {
        let read = json!({
            "metadata": {
                "name": "worker-1", "namespace": crate::NAMESPACE, "uid": "l-1", "resourceVersion": "7",
                "annotations": {"kubectl-maint.dev/reason": "disk"},
            },
            "spec": {"holderIdentity": "alice@bastion"},
        });
        let lease = AnyLease::from_json(read.to_string().as_bytes()).expect("a Lease");
        let call = apply(&lease);
        assert_eq!(call.method, Method::PATCH);
        let (_, body) = call.body.expect("a body");
        let applied: Value = serde_json::from_slice(&body).expect("JSON");
        let expected = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": "worker-1", "uid": "l-1", "resourceVersion": "7",
                "annotations": {"kubectl-maint.dev/repaired": "true"},
            },
        });
        assert_eq!(applied, expected);
    }
}
