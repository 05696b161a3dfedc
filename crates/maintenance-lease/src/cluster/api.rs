//! Access to the Leases of one repository, and the state of the writes to them.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kube::Client;

use super::open_writes::OpenWrites;
use super::requests::Requests;
use super::server_time::OnSuspectedPause;
use crate::bugs;
use crate::env::Env;
use crate::outcome::Right;
use crate::repository::Repository;

/// Access to the API server for the Leases of one repository: [`Requests`], and the state that these Leases need.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) requests: Requests,
    pub(crate) open_writes: OpenWrites,
    pub(crate) repository: Arc<Repository>,
    /// The API user, for acquisitions of node locks.
    user: Arc<RwLock<Option<String>>>,
    /// Whether a missing namespace is an error. Otherwise an acquisition creates it.
    keeps_namespace_missing: Arc<AtomicBool>,
}

impl Deref for Api {
    type Target = Requests;

    fn deref(&self) -> &Requests {
        &self.requests
    }
}

impl DerefMut for Api {
    fn deref_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }
}

impl Api {
    pub(crate) fn new(
        client: Client,
        env: Arc<dyn Env>,
        limit: Option<Duration>,
        repository: Repository,
        on_suspected_pause: OnSuspectedPause,
    ) -> Self {
        Self {
            requests: Requests::on(bugs::machine(env), client, limit, on_suspected_pause),
            open_writes: OpenWrites::default(),
            repository: Arc::new(repository),
            user: Arc::default(),
            keeps_namespace_missing: Arc::default(),
        }
    }

    /// The same for a caller that retries by itself: every request is sent once.
    pub(crate) fn once(&self) -> Self {
        Self {
            requests: self.requests.once(),
            ..self.clone()
        }
    }

    /// The API user that acquisitions name, if it is known. Only node locks have one.
    pub(crate) fn user(&self) -> Option<String> {
        let user = self.user.read().unwrap_or_else(PoisonError::into_inner);
        user.clone().filter(|_| self.repository.locks_nodes())
    }

    /// Names this API user in acquisitions from now on.
    pub(crate) fn set_user(&self, name: String) {
        *self.user.write().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }

    /// Whether a missing namespace is created. Only that of node locks ever is.
    pub(crate) fn creates_namespace(&self) -> bool {
        self.repository.locks_nodes() && !self.keeps_namespace_missing.load(Ordering::Relaxed)
    }

    pub(crate) fn set_creates_namespace(&self, creates: bool) {
        self.keeps_namespace_missing
            .store(!creates, Ordering::Relaxed);
    }

    /// The right to `verb` the Leases.
    pub(crate) fn lease_right(&self, verb: &'static str) -> Right {
        Right::on_leases(verb, &self.repository)
    }
}
