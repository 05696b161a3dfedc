//! How what a lock set on its Node is removed.

use maintenance_lease::{CLEANUP, Error, NodeLease};

use crate::apply::{KeysRemoved, clear_keys, remove_keys};
use crate::node_keys::NodeKeys;
use crate::protection_writer::{ProtectionWriter, lock_id};

impl ProtectionWriter<'_> {
    /// Removes what [`protect`](Self::protect) set for the lock `ending` on `node`, before that lock is ended, and what is left
    /// of locks that have ended.
    ///
    /// # Errors
    /// If the Node or the Lease can't be read, or the Node can't be written.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What is set may still be removed.
    pub async fn unprotect(
        &self,
        node: &str,
        ending: Option<&NodeLease>,
    ) -> Result<KeysRemoved, Error> {
        // A lock without a label of its own leaves no trace on the Node.
        let ending = ending.filter(|lease| lease.purpose() != Some(CLEANUP));
        let ending = ending.and_then(lock_id);
        let shown = || self.current_lock_id(node);
        remove_keys(self.locks.requests(), node, ending.as_deref(), shown).await
    }

    /// Removes everything that locks set on `node`, whatever lock it belongs to, but not the cordon of a lock that stands.
    /// Returns what was removed. What somebody else set to the same value stays.
    ///
    /// # Errors
    /// If the Node or the Lease can't be read, or the Node can't be written.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What is set may still be removed.
    pub async fn clear(&self, node: &str) -> Result<NodeKeys, Error> {
        let shown = || self.current_lock_id(node);
        clear_keys(self.locks.requests(), node, shown).await
    }
}
