//! The locks that other tools have for themselves.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::coordination::v1::Lease;
use maintenance_lease::{ApiError, MEDIK8S_LEASES};
use other_tools::{kured_locks, lock_of_medik8s_lease, medik8s_finding};
use pod_safety::cluster::Reader;

use super::unread::unread;
use crate::run::session::Session;
use crate::words::doctor::finding::{Finding, KURED_LOCK, Source};

/// Who holds them, and for which nodes. Also the medik8s Leases that locks hold which have ended or expired.
pub(super) async fn check(session: &Session<'_>, reader: &Reader, fix: bool) -> Vec<Finding> {
    let of_kured = kured(reader).await;
    let of_kured = of_kured.unwrap_or_else(|error| Some(unread(Source::KuredLock, &error.into())));
    let mut found: Vec<Finding> = of_kured.into_iter().collect();
    match medik8s(reader).await {
        Ok((held, of_locks)) => {
            found.extend((!held.is_empty()).then_some(Finding::Medik8sLeases(held)));
            found.extend(left_over(session, of_locks, fix).await);
        }
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

/// Nodes, each with the holder of its medik8s Lease.
type ByNode = Vec<(String, String)>;

/// The medik8s Leases of others, and those of locks.
async fn medik8s(reader: &Reader) -> Result<(ByNode, Vec<String>), ApiError> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{MEDIK8S_LEASES}/leases");
    let now = reader.now();
    let all = reader.select(&path, "", |lease: Lease| {
        let holder = medik8s_finding(&lease, now).and_then(|finding| finding.detail);
        let is_of_lock = lock_of_medik8s_lease(&lease).is_some();
        let name = lease.metadata.name?;
        let node = name.strip_prefix("node-");
        // Locks hold only Leases that are named after a node.
        let is_of_lock = is_of_lock && node.is_some();
        let node = node.unwrap_or(&name);
        (holder.is_some() || is_of_lock).then(|| (node.to_owned(), holder, is_of_lock))
    });
    let (mut held, mut of_locks) = (Vec::new(), Vec::new());
    for (node, holder, is_of_lock) in all.await? {
        held.extend(holder.map(|holder| (node.clone(), holder)));
        of_locks.extend(is_of_lock.then_some(node));
    }
    Ok((held, of_locks))
}

/// The Leases `of_locks` that have ended or expired. Most have a record on their Node, and were removed with it.
async fn left_over(session: &Session<'_>, of_locks: Vec<String>, fix: bool) -> Vec<Finding> {
    let (mut left, mut removed) = (Vec::new(), Vec::new());
    for node in of_locks {
        let shown = session.protection().current_lock_id(&node).await;
        // What can't be read is not known to be left over. The end of a lock that stands also deletes the Lease of an earlier one.
        if shown.map_or(true, |shown| shown.is_some()) {
            continue;
        }
        if fix && session.release_medik8s_lease(&node).await {
            removed.push(node);
        } else {
            left.push(node);
        }
    }
    let removed = (!removed.is_empty()).then_some(Finding::Medik8sLeasesDeleted(removed));
    let left = (!left.is_empty()).then_some(Finding::StaleMedik8sLeases(left));
    removed.into_iter().chain(left).collect()
}
