//! The state that all requests to one sandbox share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::Notify;

use crate::collector::{Collector, Suspect, collect};
use crate::identity::Identities;
use crate::resource::{Catalog, Resource};
use crate::store::Store;

/// The time that the server writes to `Date` headers and creation times.
pub(crate) type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

pub(crate) struct Server {
    pub(crate) catalog: Catalog,
    pub(crate) collector: Option<Collector>,
    clock: Clock,
    state: Mutex<State>,
    /// Wakes watches in the order in which they began to wait. The `watch` channel of tokio would
    /// wake them in a random order, but a seed must repeat a run exactly.
    changed: Notify,
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
        Self {
            catalog,
            collector,
            clock,
            state: Mutex::new(State { store, identities }),
            changed: Notify::new(),
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.clock)()
    }

    /// The stored objects, for reading. A change through this guard wakes no watch.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // If a closure of a test panics, the objects are still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write` as one step, and then informs watches and the collector about the changes.
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
            self.changed.notify_waiters();
            if let (Some(collector), Some(due)) = (&self.collector, due) {
                self.schedule(collector.delay, due);
            }
        }
        outcome
    }

    /// Checks the suspects after the delay, or at once if there is no tokio runtime.
    fn schedule(self: &Arc<Self>, delay: Duration, due: Vec<Suspect>) {
        if due.is_empty() {
            return;
        }
        let server = Arc::downgrade(self);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    tokio::time::sleep(delay).await;
                    Self::collect(&server, &due);
                });
            }
            Err(_) => Self::collect(&server, &due),
        }
    }

    fn collect(server: &Weak<Self>, due: &[Suspect]) {
        if let Some(server) = server.upgrade() {
            for suspect in due {
                let now = server.now();
                server.change(|state| collect(&server.catalog, &mut state.store, now, suspect));
            }
        }
    }

    /// Waits for a change after `revision`.
    pub(crate) async fn changed_since(&self, revision: u64) {
        let changed = self.changed.notified();
        if self.state().store.revision() <= revision {
            changed.await;
        }
    }

    /// The object with this key in the store.
    pub(crate) fn find(&self, resource: &Resource, key: &str) -> Option<Arc<Value>> {
        self.state().store.get(resource, key).cloned()
    }
}
