//! Locks that a client has before it locks a set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maintenance_lease::{Acquire, HeldLease, Hold, NodeLease, Release};

use super::agent::{Agent, acquisition};
use super::worker;
use crate::history::{Acquisition, Call, LockSet};

/// How long the command takes to end.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// A lock from before the set.
pub(super) struct EarlierLock {
    node: Arc<str>,
    acquisition: Acquisition,
    /// What releases it; a hold is ended by its node's name.
    release: Release,
    /// Renews it, as the command around the one that locks the set does.
    kept: Option<HeldLease>,
}

/// Locks some of the nodes one by one.
pub(super) async fn lock_before(agent: &mut Agent, set: &LockSet) -> Vec<EarlierLock> {
    let mut earlier = Vec::new();
    if agent.rng.bool() {
        return earlier;
    }
    for node in &set.nodes {
        if agent.rng.bool() {
            earlier.extend(lock(agent, node, set.holds()).await);
        }
    }
    earlier
}

async fn lock(agent: &mut Agent, node: &Arc<str>, for_hold: bool) -> Option<EarlierLock> {
    let holds = agent.rng.u8(..if for_hold { 2 } else { 10 }) == 0;
    let reason = some_reason(agent);
    let seconds = agent.rng.u32(3..=agent.longest);
    let locked = match holds {
        true => {
            let options = Hold::new(&*reason);
            let work = agent.maintenance.hold(&**node, &options);
            agent.call(node, Call::Hold(None), work).await
        }
        false => {
            let options = Acquire::new()
                .duration(Duration::from_secs(seconds.into()))
                .reason(&*reason);
            let work = agent.maintenance.try_acquire(&**node, &options);
            agent.call(node, Call::Acquire(seconds), work).await
        }
    };
    let change = locked.ok()?;
    let kept = match agent.rng.bool() {
        true => agent.keep(&change, GRACE).await.ok(),
        false => None,
    };
    Some(EarlierLock {
        node: node.clone(),
        acquisition: acquisition(change.lease.as_ref()?)?,
        release: Release::new().lock_id(change.lock_id()?),
        kept,
    })
}

pub(super) fn some_reason(agent: &mut Agent) -> Arc<str> {
    format!("reason {}", agent.rng.u16(..)).into()
}

/// Releases most of them. The others expire, or are entered again.
pub(super) async fn release_earlier(agent: &mut Agent, all: Vec<EarlierLock>) {
    for lock in all {
        drop(lock.kept);
        if lock.acquisition.is_hold() || agent.rng.u8(..4) == 0 {
            continue;
        }
        let meant = Some(lock.acquisition);
        worker::release(agent, &lock.node, lock.release, meant).await;
    }
}

/// Ends the client's holds, also those that a process left that crashed.
pub(super) async fn end_holds(agent: &Agent) {
    let Ok(leases) = agent.maintenance.list().await else {
        return;
    };
    let identity = agent.maintenance.identity();
    // In an order that every run of a seed repeats.
    let leases: BTreeMap<String, NodeLease> = leases.into_iter().collect();
    for (node, lease) in leases {
        if lease.is_hold() && lease.is_held_by(identity) {
            let work = agent.maintenance.unhold(&node, None);
            // If it fails, it is tried again before the next set.
            let _ = agent
                .call(&node.as_str().into(), Call::Unhold(None), work)
                .await;
        }
    }
}
