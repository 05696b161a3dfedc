//! The Lease that operators of medik8s take before they work on a node. A lock can hold it, so that they do not begin.
//!
//! medik8s respects a Lease of any holder until it expires, and deletes its own after use. A lock takes only a Lease
//! that is free or has expired. The Node has a record of it before that write and until it is deleted.

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Now, Span};
use maintenance_lease::{ApiError, Call, MEDIK8S_HOLDER, MEDIK8S_LEASES, Requests};
use serde_json::{Value, json};

use crate::apply::{self, KeysOfLock};
use crate::findings::{medik8s_lease_path, valid_medik8s_holder};
use crate::node_keys::{FIELD_MANAGER, LOCK_ID, annotation};
use crate::other_objects::LEASE_RECORD;
use crate::writes::{MERGE, Tries, patch, read};

/// The longest duration that the API server accepts, in seconds: 68 years.
const FOREVER: i32 = i32::MAX;

/// The result of [`hold_medik8s_lease`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseHeld {
    /// The lock holds it.
    Done,
    /// This holder has it. Nothing was written.
    Busy(String),
    /// The cluster has no namespace for these Leases.
    NoNamespace,
    /// The lock has ended, or is being ended. It does not hold the Lease.
    LockEnded,
}

/// The result of [`release_medik8s_lease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseReleased {
    /// No ended lock holds it. It was deleted, or does not exist, or somebody else has it.
    Done,
    /// The lock that the maintenance Lease shows holds it. It was left as it is.
    StillHeld,
}

/// The lock that holds this medik8s Lease; `None`: no lock does.
#[must_use]
pub fn lock_of_medik8s_lease(lease: &Lease) -> Option<&str> {
    is_ours(lease).then(|| annotation(&lease.metadata, LOCK_ID).unwrap_or_default())
}

/// Takes the medik8s Lease of the Node for a lock, unless somebody else has it.
///
/// `is_held` reads whether the maintenance Lease still shows the lock id. It is called before the write, and after it.
///
/// # Errors
/// If the Lease can't be read or written, or keeps changing. Also the errors of `is_held`.
///
/// # Caveats
/// Dropping this future abandons the answer. The Lease may still be taken.
pub async fn hold_medik8s_lease<E: From<ApiError>>(
    requests: &Requests,
    of: KeysOfLock<'_>,
    now: impl Fn() -> Now,
    is_held: impl AsyncFn() -> Result<bool, E>,
) -> Result<LeaseHeld, E> {
    let mut tries = Tries::of_conflicts();
    loop {
        let found: Option<Lease> = read(requests, &medik8s_lease_path(of.node)).await?;
        if let Some(lease) = &found
            && let Some(holder) = valid_medik8s_holder(lease, now())
        {
            if lock_of_medik8s_lease(lease) == Some(of.lock_id) {
                return Ok(LeaseHeld::Done);
            }
            if !is_ours(lease) {
                return Ok(LeaseHeld::Busy(holder.to_owned()));
            }
        }
        if !is_held().await? {
            return Ok(LeaseHeld::LockEnded);
        }
        match write(requests, of, found.as_ref(), now()).await {
            Ok(()) => break,
            Err(error) if error.is_missing_namespace(MEDIK8S_LEASES) => {
                return Ok(LeaseHeld::NoNamespace);
            }
            // Its holder has deleted it since the read.
            Err(error) if found.is_some() && error.is_not_found() => {}
            Err(error) => tries.wait(error).await?,
        }
    }
    // A release in between found nothing to delete. It removes the record from the Node, then looks for the Lease again.
    if is_held().await? && has_record(requests, of).await? {
        return Ok(LeaseHeld::Done);
    }
    delete_if::<E>(requests, of.node, async |id| Ok(id == of.lock_id)).await?;
    Ok(LeaseHeld::LockEnded)
}

/// Deletes the medik8s Lease of the Node if a lock that has ended holds it, or the lock `ended`, which is to end.
///
/// `shown` reads the lock id that the maintenance Lease shows. It is called if another lock than `ended` holds the Lease.
///
/// # Errors
/// If the Lease can't be read or deleted, or keeps changing. Also the errors of `shown`.
///
/// # Caveats
/// Dropping this future abandons the answer. The Lease may still be deleted.
pub async fn release_medik8s_lease<E: From<ApiError>>(
    requests: &Requests,
    node: &str,
    ended: &str,
    shown: impl AsyncFn() -> Result<Option<String>, E>,
) -> Result<LeaseReleased, E> {
    let has_ended =
        async |lock_id: &str| Ok(lock_id == ended || shown().await?.as_deref() != Some(lock_id));
    delete_if(requests, node, has_ended).await
}

/// Deletes the medik8s Lease of the Node if the lock that holds it `has_ended`.
async fn delete_if<E: From<ApiError>>(
    requests: &Requests,
    node: &str,
    has_ended: impl AsyncFn(&str) -> Result<bool, E>,
) -> Result<LeaseReleased, E> {
    let mut tries = Tries::of_conflicts();
    loop {
        let Some(lease) = read::<Lease>(requests, &medik8s_lease_path(node)).await? else {
            return Ok(LeaseReleased::Done);
        };
        let Some(lock_id) = lock_of_medik8s_lease(&lease) else {
            return Ok(LeaseReleased::Done);
        };
        if !has_ended(lock_id).await? {
            return Ok(LeaseReleased::StillHeld);
        }
        match delete(requests, node, &lease).await {
            Ok(()) => return Ok(LeaseReleased::Done),
            Err(error) if error.is_not_found() => return Ok(LeaseReleased::Done),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Whether the Node shows that the lock holds its medik8s Lease.
async fn has_record(requests: &Requests, of: KeysOfLock<'_>) -> Result<bool, ApiError> {
    let node: Option<Node> = read(requests, &apply::path(of.node)).await?;
    Ok(node.is_some_and(|node| {
        let metadata = &node.metadata;
        annotation(metadata, LOCK_ID) == Some(of.lock_id)
            && annotation(metadata, LEASE_RECORD).is_some()
    }))
}

fn is_ours(lease: &Lease) -> bool {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref()) == Some(MEDIK8S_HOLDER)
}

/// Creates the Lease, or replaces the `found` one if nobody has changed it since.
async fn write(
    requests: &Requests,
    of: KeysOfLock<'_>,
    found: Option<&Lease>,
    now: Now,
) -> Result<(), ApiError> {
    let path = medik8s_lease_path(of.node);
    match found {
        Some(found) => patch(requests, &path, MERGE, &body(of, Some(found), now))
            .await
            .map(drop),
        None => {
            let (leases, _) = path.rsplit_once('/').expect("the path of an object");
            let body = body(of, None, now);
            let call = Call::write(
                Method::POST,
                format!("{leases}?fieldManager={FIELD_MANAGER}"),
                "application/json",
                &body,
            );
            requests.call(&call).await.map(drop)
        }
    }
}

fn body(of: KeysOfLock<'_>, found: Option<&Lease>, now: Now) -> Value {
    let spec = found.and_then(|found| found.spec.as_ref());
    let before = spec.and_then(|spec| spec.lease_transitions);
    let transitions = found.map_or(0, |_| before.unwrap_or(0).checked_add(1).unwrap_or(0));
    // medik8s ignores a Lease that begins in the future of its own clock.
    let time = (now.earliest - Span::seconds(1)).to_chrono();
    let time = time.map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": format!("node-{}", of.node),
            "resourceVersion": found.and_then(|found| found.metadata.resource_version.clone()),
            "annotations": {LOCK_ID: of.lock_id},
            // The Lease goes with its Node, as those of medik8s do.
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": of.node, "uid": of.uid,
            }],
        },
        "spec": {
            "holderIdentity": MEDIK8S_HOLDER,
            "acquireTime": time,
            "renewTime": time,
            "leaseDurationSeconds": FOREVER,
            "leaseTransitions": transitions,
        },
    })
}

/// Deletes this version of the Lease.
async fn delete(requests: &Requests, node: &str, lease: &Lease) -> Result<(), ApiError> {
    let metadata = &lease.metadata;
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
    });
    let call = Call::write(
        Method::DELETE,
        medik8s_lease_path(node),
        "application/json",
        &options,
    );
    requests.call(&call).await.map(drop)
}
