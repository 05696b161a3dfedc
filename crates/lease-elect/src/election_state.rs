//! The state of the election, as shown over HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use maintenance_lease::protocol::BootInstant;

/// What this process does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// It reads the Lease.
    #[default]
    Starting,
    /// It watches, while another process leads.
    Standby,
    /// It leads: its daemon runs.
    Leader,
    /// It led: its daemon is ending, or has ended.
    Ending,
}

/// The identity of the election.
#[derive(Clone, Debug)]
pub(crate) struct ElectionNames {
    pub(crate) namespace: String,
    pub(crate) lease: String,
    pub(crate) holder: String,
}

/// The state of the election.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionSnapshot {
    /// `None` before the connection is configured, and with it the namespace.
    pub(crate) named: Option<ElectionNames>,
    pub(crate) role: Role,
    /// It can't see whether the lead becomes free.
    pub(crate) is_unwatched: bool,
    /// When its lead ends, or ended, by the boot clock.
    pub(crate) deadline: Option<BootInstant>,
    /// When it last acquired or renewed the lease.
    pub(crate) renewed: Option<SystemTime>,
    /// How often it renewed the lease.
    pub(crate) renewals: u64,
    /// How often it saw another process become the leader.
    pub(crate) leaders_seen: u64,
}

/// The shared state that the HTTP server shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionState(Arc<Mutex<ElectionSnapshot>>);

impl ElectionState {
    pub(crate) fn facts(&self) -> ElectionSnapshot {
        self.lock().clone()
    }

    /// Sets the Lease of the election.
    pub(crate) fn names(&self, named: ElectionNames) {
        self.lock().named = Some(named);
    }

    /// Another process leads.
    pub(crate) fn led_by_another(&self) {
        let mut facts = self.lock();
        facts.role = Role::Standby;
        facts.leaders_seen += 1;
    }

    pub(crate) fn set_unwatched(&self, is_unwatched: bool) {
        self.lock().is_unwatched = is_unwatched;
    }

    /// This process leads until `deadline`, or beyond.
    pub(crate) fn leads(&self, deadline: BootInstant) {
        let mut facts = self.lock();
        facts.role = Role::Leader;
        facts.is_unwatched = false;
        facts.deadline = Some(deadline);
        facts.renewed = Some(SystemTime::now());
    }

    /// It continues to lead until `deadline`, which a renewal extends.
    pub(crate) fn extend(&self, deadline: BootInstant) {
        let mut facts = self.lock();
        if facts.deadline.is_some_and(|before| before < deadline) {
            facts.renewals += 1;
            facts.renewed = Some(SystemTime::now());
        }
        facts.deadline = Some(deadline);
    }

    /// Its daemon is ending.
    pub(crate) fn ends(&self) {
        self.lock().role = Role::Ending;
    }

    fn lock(&self) -> MutexGuard<'_, ElectionSnapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
