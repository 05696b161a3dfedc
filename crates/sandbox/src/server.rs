//! What all requests to one sandbox share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::watch;

use crate::collector::Collector;
use crate::identity::Identities;
use crate::resource::{Catalog, Resource};
use crate::store::Store;

/// Tells the time that the server writes into `Date` headers and creation times.
pub(crate) type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

pub(crate) struct Server {
    pub(crate) catalog: Catalog,
    pub(crate) collector: Option<Collector>,
    clock: Clock,
    state: Mutex<State>,
    /// The newest revision, for watches to wake up on.
    revision: watch::Sender<u64>,
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) identities: Identities,
}

impl Server {
    pub(crate) fn new(
        catalog: Catalog,
        collector: Option<Collector>,
        clock: Clock,
        store: Store,
        identities: Identities,
    ) -> Self {
        let revision = watch::Sender::new(store.revision());
        Self {
            catalog,
            collector,
            clock,
            state: Mutex::new(State { store, identities }),
            revision,
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.clock)()
    }

    /// Everything stored, for reading: a change made here wakes no watch.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test's own closure leaves the objects as they were.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write` as one step, then tells watches and the collector what it changed.
    pub(crate) fn change<T>(self: &Arc<Self>, write: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let before = state.store.revision();
        let outcome = write(&mut state);
        let after = state.store.revision();
        if after > before {
            let due = self
                .collector
                .as_ref()
                .map(|collector| collector.due(&state.store, before));
            drop(state);
            self.revision.send_replace(after);
            if let (Some(collector), Some(due)) = (&self.collector, due) {
                collector.schedule(self, due);
            }
        }
        outcome
    }

    /// Wakes up at every change.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// An object by the names that users know it by.
    pub(crate) fn find(&self, resource: &Resource, key: &str) -> Option<Arc<Value>> {
        self.state().store.get(resource, key).cloned()
    }
}
