//! The locks that a set holds, which are released when it is dropped.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::future::select;
use futures::stream::{self, StreamExt as _};

use super::options::PARALLEL;
use super::stop::GRACE;
use crate::cluster::reads::NodeAndLease;
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::options::Renew;
use crate::outcome::{Change, Error, Refused};
use crate::protocol::{BootInstant, Refusal, State, leaves_enough};

/// The locks that are held, by place. Those that were acquired are released when this is dropped.
pub(super) struct HeldLocks {
    pub(super) locks: Maintenance,
    pub(super) places: BTreeMap<usize, Change>,
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        let changes: Vec<Change> = std::mem::take(&mut self.places).into_values().collect();
        let env = self.locks.api.env.clone();
        if changes.is_empty() || env.runtime().is_err() {
            return;
        }
        let (locks, machine) = (self.locks.clone(), env.clone());
        env.spawn(Box::pin(async move {
            let releases = stream::iter(&changes).for_each_concurrent(PARALLEL, async |change| {
                // If it fails, nobody is left to notify: the lease expires.
                let _ = locks.release_acquired(change).await;
            });
            select(pin!(releases), machine.sleep(GRACE)).await;
        }));
    }
}

/// Checks that `change` still stands: renews a lease, reads a hold.
pub(super) async fn verify_lock(locks: &Maintenance, change: Change) -> Result<Change, Error> {
    let node = &change.node;
    if change.lease.as_ref().is_some_and(|lease| lease.admin) {
        let suspected_pauses = locks.server_time().suspected_pauses();
        let lease = locks.get(node).await?;
        if lease.as_ref().and_then(NodeLease::lock_id) == change.lock_id() {
            return Ok(Change {
                suspected_pauses,
                ..change
            });
        }
        let now = locks.server_time().now();
        let state = lease.as_ref().map_or(State::Free, |lease| lease.state(now));
        return Err(Error::Refused(Box::new(Refused {
            subject: locks.repository().subject(),
            node: node.clone(),
            refusal: match state {
                State::Free => Refusal::NotHeld,
                _ => Refusal::ChangedHands,
            },
            lease,
            state,
        })));
    }
    let options = match change.lock_id() {
        Some(lock_id) => Renew::new().lock_id(lock_id),
        None => Renew::new(),
    };
    let seen = NodeAndLease::without_row(node, change.lease.clone());
    let renewed = locks.renew(seen, &options).await?;
    Ok(Change {
        lease: renewed.lease,
        deadline: renewed.deadline,
        suspected_pauses: renewed.suspected_pauses,
        ..change
    })
}

/// Whether less than a third of the duration is left: too little to report success.
pub(super) fn has_little_time(change: &Change, now: BootInstant) -> bool {
    let duration = change.lease.as_ref().map_or(0, |lease| lease.duration);
    change
        .deadline
        .is_some_and(|deadline| !leaves_enough(deadline, duration, now))
}
