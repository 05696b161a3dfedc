//! The state of a kept acquisition, as its keeper reports it to the work under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

use super::lost::Lost;
use crate::cluster::server_time::ServerTime;
use crate::lease::NodeLease;
use crate::protocol::BootInstant;

/// The state of a kept acquisition.
#[derive(Clone, Debug)]
pub struct HeldState {
    /// The newest version of the Lease that was seen while it was held.
    pub lease: NodeLease,
    /// When all work must have ended, by the boot clock, unless a renewal comes first.
    pub deadline: BootInstant,
    /// When the work is asked to stop.
    pub stop_at: BootInstant,
    /// Whether the lock is in doubt, because the machine may have been paused. No work may start or
    /// continue until the Lease has been read.
    pub checking: bool,
    /// Why the last renewal failed, in the words of the request; `None` after a success.
    pub problem: Option<String>,
    /// How it was lost, once it is lost; nothing changes after that.
    pub lost: Option<Arc<Lost>>,
}

/// State that the keeper's task and the holder's handle share.
pub(super) struct Shared {
    held_state: watch::Sender<HeldState>,
    /// The lock came into doubt, and the keeper has not been notified yet.
    check_required: AtomicBool,
    /// It is lost, and the notification is about to follow.
    over: AtomicBool,
    /// How many pauses of the machine had been suspected at the last check.
    suspected_pauses: AtomicU64,
}

impl Shared {
    pub(super) fn new(held_state: HeldState, suspected_pauses: u64) -> Self {
        Self {
            held_state: watch::Sender::new(held_state),
            check_required: AtomicBool::new(false),
            over: AtomicBool::new(false),
            suspected_pauses: AtomicU64::new(suspected_pauses),
        }
    }

    pub(super) fn held_state(&self) -> HeldState {
        self.held_state.borrow().clone()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<HeldState> {
        self.held_state.subscribe()
    }

    /// Whether work may go on at `boot`.
    pub(super) fn may_work(&self, boot: BootInstant) -> bool {
        let held_state = self.held_state.borrow();
        let is_over = held_state.lost.is_some() || self.over.load(Ordering::SeqCst);
        !is_over && !held_state.checking && boot < held_state.stop_at
    }

    /// Stops all work first. The reason is reported afterwards.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Notifies all receivers, if something changed.
    pub(super) fn publish(&self, next: &HeldState) {
        self.held_state.send_if_modified(|held_state| {
            let next = HeldState {
                checking: next.checking || self.check_required.load(Ordering::SeqCst),
                ..next.clone()
            };
            let same = held_state.lease.resource_version() == next.lease.resource_version()
                && held_state.deadline == next.deadline
                && held_state.stop_at == next.stop_at
                && held_state.checking == next.checking
                && held_state.problem.is_some() == next.problem.is_some()
                && held_state.lost.is_some() == next.lost.is_some();
            if !same {
                *held_state = next;
            }
            !same
        });
    }

    /// Checks the clocks. If the machine may have been paused since the last check, all work stops until
    /// the Lease has been read.
    pub(super) fn check_clocks(&self, time: &ServerTime) {
        let suspected_pauses = time.suspected_pauses();
        // All work is stopped before another check can run and find nothing new.
        if self.suspected_pauses.load(Ordering::SeqCst) != suspected_pauses {
            self.check_required.store(true, Ordering::SeqCst);
            self.held_state
                .send_if_modified(|held_state| !std::mem::replace(&mut held_state.checking, true));
            self.suspected_pauses
                .store(suspected_pauses, Ordering::SeqCst);
        }
    }

    /// Whether it came into doubt since the last check.
    pub(super) fn take_required_check(&self) -> bool {
        self.check_required.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env as _;
    use crate::env::testing::Paused;
    use crate::protocol::Span;
    use crate::repository::Repository;

    #[test]
    fn a_pause_stops_all_keepers_no_matter_which_notices_it() {
        let machine = Arc::new(Paused::default());
        let time = ServerTime::new(machine.clone(), Arc::new(|| ()));
        let json = br#"{"metadata":{"name":"n","uid":"u","resourceVersion":"5"}}"#;
        let held_state = HeldState {
            lease: NodeLease::from_json(json, &Repository::default()).expect("a Lease"),
            deadline: machine.boot().plus(Span::seconds(60)),
            stop_at: machine.boot().plus(Span::seconds(50)),
            checking: false,
            problem: None,
            lost: None,
        };
        let shared = Shared::new(held_state, time.suspected_pauses());
        shared.check_clocks(&time);
        assert!(shared.may_work(machine.boot()), "nothing happened");
        machine.set_ahead(9_000_000);
        shared.check_clocks(&time);
        shared.check_clocks(&time);
        assert!(!shared.may_work(machine.boot()));
        assert!(
            shared.take_required_check(),
            "the keeper has to read the Lease"
        );
        assert!(!shared.take_required_check());
    }
}
