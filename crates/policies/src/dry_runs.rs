//! Dry runs that break a rule: they show what the policies refuse.

use http::Method;
use maintenance_lease::{Accept, ApiError, Call, NAMESPACE, Requests, escape};
use serde_json::{Value, json};

use crate::FIELD_MANAGER;

/// A dry run that breaks a rule of the lease policy and no other.
pub fn wrong_time() -> Call {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"generateName": "policy-check-", "namespace": NAMESPACE},
        "spec": {"renewTime": "2000-01-01T00:00:00.000000Z"},
    });
    Call::write(
        Method::POST,
        format!(
            "/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases?dryRun=All&fieldManager={FIELD_MANAGER}"
        ),
        "application/json",
        &lease,
    )
}

/// A dry run that breaks a rule of the node policy, also on a Node on hold: it adds the held label without a lock id.
pub fn held_without_lock(node: &str) -> Call {
    let patch = json!({"metadata": {
        "labels": {"kubectl-maint.dev/held": "policy-check"},
        "annotations": {"kubectl-maint.dev/held-lock-id": null},
    }});
    Call::write(
        Method::PATCH,
        format!(
            "/api/v1/nodes/{}?dryRun=All&fieldManager={FIELD_MANAGER}",
            escape(node)
        ),
        "application/merge-patch+json",
        &patch,
    )
}

/// Whether a policy of ours refuses `dry_run`; `None` if it fails for another reason.
pub async fn refuses(requests: &Requests, dry_run: &Call) -> Option<bool> {
    match requests.call(dry_run).await {
        Err(error) if error.policy_code().is_some() => Some(true),
        Ok(_) => Some(false),
        Err(_) => None,
    }
}

/// Any Node, for [`held_without_lock`]; `None`: there is none.
///
/// # Errors
/// If Nodes can't be listed.
pub async fn any_node(requests: &Requests) -> Result<Option<String>, ApiError> {
    let path = "/api/v1/nodes?limit=1".to_owned();
    let body = requests.call(&Call::get(path, Accept::Json)).await?;
    let nodes: Value =
        serde_json::from_slice(&body).map_err(|error| ApiError::Unreadable(error.to_string()))?;
    let name = nodes["items"][0]["metadata"]["name"].as_str();
    Ok(name.map(ToOwned::to_owned))
}
