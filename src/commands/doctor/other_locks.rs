//! The locks that other tools have for themselves.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::coordination::v1::Lease;
use maintenance_lease::{ApiError, MEDIK8S_LEASES};
use node_keys::{kured_locks, medik8s_finding};
use pod_safety::cluster::Reader;

use super::unread::unread;
use crate::words::doctor::finding::{Finding, KURED_LOCK, Source};

/// Who holds them, and for which nodes.
pub(super) async fn check(reader: &Reader) -> Vec<Finding> {
    let of_kured = kured(reader).await;
    let of_kured = of_kured.unwrap_or_else(|error| Some(unread(Source::KuredLock, &error.into())));
    let mut found: Vec<Finding> = of_kured.into_iter().collect();
    match medik8s(reader).await {
        Ok(held) => found.extend((!held.is_empty()).then_some(Finding::Medik8sLeases(held))),
        Err(error) => found.push(unread(Source::Medik8sLeases, &error.into())),
    }
    if found.is_empty() {
        found.push(Finding::NoOtherLock);
    }
    found
}

/// The lock of kured, where its manifests put it.
async fn kured(reader: &Reader) -> Result<Option<Finding>, ApiError> {
    let path = "/apis/apps/v1/namespaces/kube-system/daemonsets/kured";
    let daemon_set = match reader.get::<DaemonSet>(path).await {
        Err(error) if error.is_not_installed() => None,
        read => read?,
    };
    let annotations = daemon_set.and_then(|set| set.metadata.annotations);
    let lock = annotations.and_then(|mut all| all.remove(KURED_LOCK));
    let now = reader.now();
    let locks = kured_locks(&lock.unwrap_or_default(), now).into_iter();
    let locks = locks.map(|lock| (lock.node, lock.since.map(|since| now.latest - since)));
    let locks: Vec<_> = locks.collect();
    Ok((!locks.is_empty()).then_some(Finding::KuredLocks(locks)))
}

/// The nodes whose medik8s Lease is held, each with its holder.
async fn medik8s(reader: &Reader) -> Result<Vec<(String, String)>, ApiError> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{MEDIK8S_LEASES}/leases");
    let now = reader.now();
    let all = reader.select(&path, "", |lease: Lease| {
        let holder = medik8s_finding(&lease, now)?.detail?;
        let name = lease.metadata.name?;
        let node = name.strip_prefix("node-").unwrap_or(&name);
        Some((node.to_owned(), holder))
    });
    all.await
}
