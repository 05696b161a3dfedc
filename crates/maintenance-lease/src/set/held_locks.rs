//! The locks that a set holds, which are released when it is dropped.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, select, select_all};
use futures::stream::{self, StreamExt as _};

use super::parallel::GRACE_AFTER_INTERRUPT;
use crate::cluster::reads::NodeAndLease;
use crate::keeper::{HeldLease, Lost};
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::options::Renew;
use crate::outcome::{Change, Error, Refused};
use crate::protocol::{BootInstant, Refusal, State, leaves_enough};

/// How many are released in parallel when the set is dropped.
const PARALLEL: usize = 32;

/// The locks that are held, by place. Those that were acquired are released when this is dropped.
pub(super) struct HeldLocks {
    pub(super) locks: Maintenance,
    pub(super) places: BTreeMap<usize, Lock>,
}

/// A lock that is held.
pub(super) struct Lock {
    pub(super) change: Change,
    /// Renews it while others are waited for.
    pub(super) kept: Option<HeldLease>,
}

impl Lock {
    /// Stops the renewals, and updates the change with the newest Lease and deadline.
    pub(super) fn settle(&mut self) {
        if let Some(kept) = self.kept.take() {
            let held_state = kept.held_state();
            self.change.lease = Some(held_state.lease);
            self.change.deadline = self.change.deadline.map(|_| held_state.deadline);
            kept.leave();
        }
    }

    pub(super) fn into_change(mut self) -> Change {
        self.settle();
        self.change
    }
}

impl HeldLocks {
    pub(super) fn insert(&mut self, at: usize, change: Change) {
        self.places.insert(at, Lock { change, kept: None });
    }

    pub(super) fn extend(&mut self, at: usize, change: Option<Change>) {
        if let Some(change) = change {
            self.insert(at, change);
        }
    }

    /// Whether any of them was acquired by this call.
    pub(super) fn is_any_new(&self) -> bool {
        let mut places = self.places.values();
        places.any(|lock| self.locks.is_new(&lock.change))
    }

    /// Completes when a lock that is being renewed is lost.
    pub(super) fn first_loss(&self) -> BoxFuture<'_, (usize, Arc<Lost>)> {
        let kept = self.places.iter();
        let kept = kept.filter_map(|(&at, lock)| Some((at, lock.kept.as_ref()?)));
        let losses: Vec<_> = kept
            .map(|(at, kept)| kept.expiry().map(move |lost| (at, lost)).boxed())
            .collect();
        match losses.is_empty() {
            true => pending().boxed(),
            false => select_all(losses).map(|(first, ..)| first).boxed(),
        }
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        let locks = std::mem::take(&mut self.places).into_values();
        let changes: Vec<Change> = locks.map(Lock::into_change).collect();
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
            select(pin!(releases), machine.sleep(GRACE_AFTER_INTERRUPT)).await;
        }));
    }
}

/// Checks that `change` still stands: renews a lease, reads a hold.
pub(super) async fn verify_lock(locks: &Maintenance, change: &Change) -> Result<Change, Error> {
    let node = &change.node;
    if change.lease.as_ref().is_some_and(|lease| lease.admin) {
        let suspected_pauses = locks.server_time().suspected_pauses();
        let lease = locks.get(node).await?;
        if lease.as_ref().and_then(NodeLease::lock_id) == change.lock_id() {
            return Ok(Change {
                suspected_pauses,
                ..change.clone()
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
    let renewed = locks.renew_seen(node, &options, Some(seen)).await?;
    let mut sure = change.clone();
    sure.lease = renewed.lease;
    sure.deadline = renewed.deadline;
    sure.suspected_pauses = renewed.suspected_pauses;
    Ok(sure)
}

/// Whether less than a third of the duration is left: too little to report success.
pub(super) fn has_little_time(change: &Change, now: BootInstant) -> bool {
    let duration = change.lease.as_ref().map_or(0, |lease| lease.duration);
    change
        .deadline
        .is_some_and(|deadline| !leaves_enough(deadline, duration, now))
}
