//! Writes that are under way or unknown, so that a caller who stops waiting can report whether one may still
//! take effect.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::lease::NodeLease;

/// The writes of a handle whose outcome is not known. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OpenWrites(Arc<Mutex<Writes>>);

#[derive(Default)]
struct Writes {
    /// The number of writes so far.
    count: u64,
    open: Vec<OpenWrite>,
}

#[derive(Clone)]
struct OpenWrite {
    number: u64,
    node: String,
    /// The version of the Lease that it is a compare-and-swap on; `None`: it creates the Lease.
    on: Option<u64>,
    /// The nonces of the acquisitions that it stands for, one after another.
    nonces: Vec<String>,
    /// Somebody had the lock before, so releasing it would not undo the write.
    was_held: bool,
    landed: bool,
    /// The holder that the server stored, if it took effect with other fields, which may lack the nonce.
    altered: Option<String>,
    /// Its sender no longer follows it.
    abandoned: bool,
}

impl OpenWrite {
    /// Whether the present Lease shows that the write has no effect any more, and will have none.
    fn is_over(&self, lease: Option<&NodeLease>) -> bool {
        match lease {
            Some(lease) if self.acquired(lease) || self.is_stored_altered(lease) => false,
            Some(lease) => self.landed || self.on.is_none_or(|on| on < lease.resource_version()),
            None => self.landed || self.on.is_some(),
        }
    }

    /// Whether it is the acquisition in the Lease.
    fn acquired(&self, lease: &NodeLease) -> bool {
        let nonce = lease.notes.nonce.as_ref();
        nonce.is_some_and(|nonce| self.nonces.contains(nonce))
    }

    fn is_stored_altered(&self, lease: &NodeLease) -> bool {
        let holder = self.altered.as_deref();
        holder.is_some() && holder == lease.holder()
    }
}

impl OpenWrites {
    /// Records that a write is about to be sent on this version of the node's Lease. It stays open if the
    /// result is dropped.
    pub(crate) fn open(&self, node: &str, on: Option<u64>) -> OpenWriteGuard {
        let mut writes = self.lock();
        writes.count += 1;
        let write = OpenWrite {
            number: writes.count,
            node: node.to_owned(),
            on,
            nonces: Vec::new(),
            was_held: false,
            landed: false,
            altered: None,
            abandoned: false,
        };
        writes.open.push(write.clone());
        OpenWriteGuard {
            writes: self.clone(),
            write,
        }
    }

    /// Uses the present state of the node's Lease. Writes that somebody still follows are left to them.
    pub(crate) fn observed(&self, node: &str, lease: Option<&NodeLease>) {
        self.forget(node, |write| write.is_over(lease));
    }

    /// The number of writes so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Whether `lease` was acquired by a write whose caller does not and will not know the result, and
    /// that caller did not have the lock before. Only writes after the first `since` count.
    pub(crate) fn acquired(&self, node: &str, lease: &NodeLease, since: u64) -> bool {
        let writes = self.lock();
        let unreported =
            |write: &&OpenWrite| write.node == node && write.abandoned && write.number > since;
        let mut unreported = writes.open.iter().filter(unreported);
        unreported.any(|write| write.acquired(lease) && !write.was_held)
    }

    /// The caller knows the state of `lease` from now on.
    pub(crate) fn reported(&self, node: &str, lease: &NodeLease) {
        self.forget(node, |write| write.acquired(lease));
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.has_since(node, 0)
    }

    /// As [`has`](Self::has). Only writes after the first `since` count.
    pub(crate) fn has_since(&self, node: &str, since: u64) -> bool {
        let is_meant = |write: &OpenWrite| write.node == node && write.number > since;
        self.lock().open.iter().any(is_meant)
    }

    fn forget(&self, node: &str, is_meant: impl Fn(&OpenWrite) -> bool) {
        let is_meant = |write: &OpenWrite| write.node == node && write.abandoned && is_meant(write);
        self.lock().open.retain(|write| !is_meant(write));
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One write that may take effect.
#[must_use]
pub(crate) struct OpenWriteGuard {
    writes: OpenWrites,
    write: OpenWrite,
}

impl OpenWriteGuard {
    /// It is an acquisition with this nonce, perhaps of a lock that somebody already had.
    pub(crate) fn acquires(&mut self, nonce: &str, was_held: bool) {
        if !self.write.nonces.iter().any(|known| known == nonce) {
            self.write.nonces.push(nonce.to_owned());
            self.write.was_held |= was_held;
            self.update();
        }
    }

    /// It has taken effect, and its caller does not know yet.
    pub(crate) fn landed(&mut self) {
        self.write.landed = true;
        self.update();
    }

    /// It has taken effect with other fields; the server stored this holder.
    pub(crate) fn altered(&mut self, holder: &str) {
        self.write.altered = Some(holder.to_owned());
        self.update();
    }

    /// It took effect or never will, and its caller knows.
    pub(crate) fn settle(self) {
        self.remove();
    }

    fn update(&self) {
        let mut writes = self.writes.lock();
        let mut open = writes.open.iter_mut();
        if let Some(write) = open.find(|write| write.number == self.write.number) {
            write.clone_from(&self.write);
        }
    }

    fn remove(&self) {
        let mut writes = self.writes.lock();
        writes
            .open
            .retain(|write| write.number != self.write.number);
    }
}

impl Drop for OpenWriteGuard {
    fn drop(&mut self) {
        self.write.abandoned = true;
        self.update();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    fn lease(version: u64, nonce: &str) -> NodeLease {
        let json = serde_json::json!({
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": version.to_string(),
                "annotations": {"kubectl-maint.dev/acquisition": format!("1-{nonce}")},
            },
            "spec": {"holderIdentity": "alice", "leaseTransitions": 1},
        });
        let repository = Repository::node_maintenance();
        NodeLease::from_json(json.to_string().as_bytes(), &repository).unwrap()
    }

    /// An acquisition on version 5 that nobody follows any more.
    fn abandoned(writes: &OpenWrites, landed: bool) {
        let mut mark = writes.open("n", Some(5));
        mark.acquires("own", false);
        if landed {
            mark.landed();
        }
    }

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
        drop(writes.open("other", Some(5)));
        writes.observed("n", Some(&lease(5, "x")));
        assert!(writes.has("n"), "it may land on what is there");
        writes.observed("n", Some(&lease(6, "x")));
        assert!(!writes.has("n"));
        assert!(writes.has("other"));
        writes.observed("other", None);
        assert!(!writes.has("other"), "it can't land on what is gone");
    }

    #[test]
    fn a_create_may_land_until_there_is_a_lease() {
        let writes = OpenWrites::default();
        drop(writes.open("n", None));
        writes.observed("n", None);
        assert!(writes.has("n"));
        writes.observed("n", Some(&lease(6, "x")));
        assert!(!writes.has("n"));
    }

    #[test]
    fn open_writes_in_progress_are_left_to_their_caller() {
        let writes = OpenWrites::default();
        let mut mark = writes.open("n", Some(5));
        mark.acquires("own", false);
        for seen in [lease(6, "own"), lease(7, "another")] {
            writes.observed("n", Some(&seen));
            writes.reported("n", &seen);
            assert!(writes.has("n"));
            assert!(
                !writes.acquired("n", &seen, 0),
                "it may still be reported to its caller"
            );
        }
    }

    #[test]
    fn an_unreported_acquisition_is_open_while_it_is_stored() {
        for landed in [false, true] {
            let writes = OpenWrites::default();
            abandoned(&writes, landed);
            writes.observed("n", Some(&lease(6, "own")));
            assert!(writes.acquired("n", &lease(6, "own"), 0));
            assert!(!writes.acquired("n", &lease(6, "own"), writes.count()));
            assert!(!writes.acquired("n", &lease(7, "another"), 0));
            writes.observed("n", Some(&lease(7, "another")));
            assert!(!writes.has("n"));
            abandoned(&writes, landed);
            writes.reported("n", &lease(6, "own"));
            assert!(!writes.has("n"));
        }
    }

    #[test]
    fn an_acquisition_that_was_stored_without_its_nonce_is_open_while_its_holder_has_the_lease() {
        let writes = OpenWrites::default();
        let mut mark = writes.open("n", Some(5));
        mark.acquires("own", false);
        mark.altered("alice");
        drop(mark);
        writes.observed("n", Some(&lease(6, "another")));
        assert!(writes.has("n"), "alice has the lease");
        writes.observed("n", None);
        assert!(!writes.has("n"));
    }

    #[test]
    fn a_lock_that_the_caller_had_before_is_open_and_not_to_be_released() {
        let writes = OpenWrites::default();
        writes.open("n", Some(5)).acquires("own", true);
        writes.observed("n", Some(&lease(6, "own")));
        assert!(writes.has("n"));
        assert!(!writes.acquired("n", &lease(6, "own"), 0));
    }
}
