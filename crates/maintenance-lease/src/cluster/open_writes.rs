//! Which writes are under way or of unknown fate, so that who stops waiting for a verb can tell
//! whether it may still take effect.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The nodes whose Leases have such a write. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OpenWrites(Arc<Mutex<BTreeSet<String>>>);

impl OpenWrites {
    /// A write is about to be sent.
    pub(crate) fn open(&self, node: &str) {
        self.nodes().insert(node.to_owned());
    }

    /// What was sent has landed or never will.
    pub(crate) fn settle(&self, node: &str) {
        self.nodes().remove(node);
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.nodes().contains(node)
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
