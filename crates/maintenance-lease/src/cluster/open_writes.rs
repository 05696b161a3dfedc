//! Which writes are under way or of unknown fate, so that who stops waiting for a verb can tell
//! whether it may still take effect.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The writes of a handle whose fate is not known. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OpenWrites(Arc<Mutex<Writes>>);

#[derive(Default)]
struct Writes {
    /// How many there were so far.
    count: u64,
    open: Vec<OpenWrite>,
}

struct OpenWrite {
    number: u64,
    node: String,
    /// The version of the Lease that it is a compare-and-swap on; `None`: it makes the Lease.
    on: Option<u64>,
}

impl OpenWrites {
    /// A write is about to be sent on this version of the node's Lease. It stays open where what is
    /// returned is dropped.
    pub(crate) fn open(&self, node: &str, on: Option<u64>) -> Mark {
        let mut writes = self.lock();
        writes.count += 1;
        let number = writes.count;
        writes.open.push(OpenWrite {
            number,
            node: node.to_owned(),
            on,
        });
        Mark {
            writes: self.clone(),
            number,
        }
    }

    /// The node's Lease has come to `version`: what was sent on an earlier one has landed or never
    /// will, whoever sent it.
    pub(crate) fn passed(&self, node: &str, version: u64) {
        let is_over = |write: &OpenWrite| write.node == node && write.on < Some(version);
        self.lock().open.retain(|write| !is_over(write));
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.lock().open.iter().any(|write| write.node == node)
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One write that may take effect.
#[must_use]
pub(crate) struct Mark {
    writes: OpenWrites,
    number: u64,
}

impl Mark {
    /// It has landed or never will.
    pub(crate) fn settle(self) {
        let mut writes = self.writes.lock();
        writes.open.retain(|write| write.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_write_that_is_settled_says_nothing_of_another() {
        let writes = OpenWrites::default();
        let (first, second) = (writes.open("n", Some(5)), writes.open("n", Some(5)));
        first.settle();
        assert!(writes.has("n"));
        second.settle();
        assert!(!writes.has("n"));
    }

    #[test]
    fn a_write_is_over_once_the_lease_has_passed_its_version() {
        let writes = OpenWrites::default();
        drop(writes.open("n", Some(5)));
        drop(writes.open("other", None));
        writes.passed("n", 5);
        assert!(writes.has("n"), "it may land on what is there");
        writes.passed("n", 6);
        assert!(!writes.has("n"));
        assert!(writes.has("other"));
        writes.passed("other", 6);
        assert!(!writes.has("other"));
    }
}
