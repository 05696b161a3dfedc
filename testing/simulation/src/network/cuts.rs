//! The moments at which all connections break.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts them; clones share the count. Those who wait are woken in the order in which they began
/// to, which tokio's `watch` does not promise: a seed is to repeat a run exactly.
#[derive(Clone, Default)]
pub(super) struct Cuts(Arc<Inner>);

#[derive(Default)]
struct Inner {
    count: AtomicU64,
    cut: Notify,
}

impl Cuts {
    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// One more.
    pub(super) fn cut(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.cut.notify_waiters();
    }

    /// Completes when there were more than `count`.
    pub(super) async fn after(&self, count: u64) {
        loop {
            let cut = self.0.cut.notified();
            if self.count() > count {
                return;
            }
            cut.await;
        }
    }
}
