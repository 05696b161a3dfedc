//! The state of the election, as reported over HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maintenance_lease::protocol::BootInstant;

/// The role of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has not read the Lease yet.
    #[default]
    Starting,
    /// It watches the Lease, while another process leads.
    Standby,
    /// It leads, and its daemon runs.
    Leader,
    /// It led before, and its daemon is ending or has ended.
    Ending,
}

/// The names that identify the election.
#[derive(Clone, Debug)]
pub(crate) struct ElectionNames {
    pub(crate) namespace: String,
    pub(crate) lease: String,
}

/// The state of the election at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionSnapshot {
    /// `None` before the connection is configured, because the namespace is not known yet.
    pub(crate) named: Option<ElectionNames>,
    pub(crate) role: Role,
    /// The Lease can't be watched, so it cannot see whether the leader releases the lease.
    pub(crate) is_unwatched: bool,
    /// When its leadership ends or ended, by the boot clock.
    pub(crate) deadline: Option<BootInstant>,
    /// How many times it has renewed the lease.
    pub(crate) renewals: u64,
}

/// The shared state that the HTTP server reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionState(Arc<Mutex<ElectionSnapshot>>);

impl ElectionState {
    pub(crate) fn facts(&self) -> ElectionSnapshot {
        self.lock().clone()
    }

    /// Sets the names of the election.
    pub(crate) fn names(&self, named: ElectionNames) {
        self.lock().named = Some(named);
    }

    /// Records that another process leads.
    pub(crate) fn led_by_another(&self) {
        self.lock().role = Role::Standby;
    }

    pub(crate) fn set_unwatched(&self, is_unwatched: bool) {
        self.lock().is_unwatched = is_unwatched;
    }

    /// Records that this process leads, at least until `deadline`.
    pub(crate) fn leads(&self, deadline: BootInstant) {
        let mut facts = self.lock();
        facts.role = Role::Leader;
        facts.is_unwatched = false;
        facts.deadline = Some(deadline);
    }

    /// Records a new `deadline` of this leadership. A later one counts as a renewal.
    pub(crate) fn extend(&self, deadline: BootInstant) {
        let mut facts = self.lock();
        if facts.deadline.is_some_and(|before| before < deadline) {
            facts.renewals += 1;
        }
        facts.deadline = Some(deadline);
    }

    /// Records that its daemon is ending.
    pub(crate) fn ends(&self) {
        self.lock().role = Role::Ending;
    }

    fn lock(&self) -> MutexGuard<'_, ElectionSnapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
