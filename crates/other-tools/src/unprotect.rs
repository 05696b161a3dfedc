//! How what a lock set besides its Lease is removed: from its Machine and its medik8s Lease first, and last from its Node, which
//! has the records of them.

use maintenance_lease::{CLEANUP, Error, NodeLease};

use crate::apply::{KeysCleared, KeysRemoved, clear_keys, remove_keys};
use crate::left_behind::LeftBehind;
use crate::management::ManagementClusters;
use crate::medik8s_lease::{LeaseReleased, release_medik8s_lease};
use crate::other_objects::OtherObjects;
use crate::protection_writer::{ProtectionWriter, lock_id};

impl<M: ManagementClusters> ProtectionWriter<'_, M> {
    /// Removes what [`protect`](Self::protect) set for the lock `ending` on `node`, before that lock is ended, and what is left
    /// of locks that have ended. What is left on other objects is passed to `report` at once, since callers may stop waiting.
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
        report: &dyn Fn(LeftBehind),
    ) -> Result<KeysRemoved, Error> {
        // A lock without a label of its own leaves no trace on the Node.
        let ending = ending.filter(|lease| lease.purpose() != Some(CLEANUP));
        let ending = ending.and_then(lock_id);
        let shown = || self.current_lock_id(node);
        let remove = async |set: &OtherObjects, ended: &str| {
            self.remove_from_others(node, set, ended, report).await
        };
        let requests = self.locks.requests();
        remove_keys(requests, node, ending.as_deref(), shown, remove).await
    }

    /// Removes everything that locks set on `node`, whatever lock it belongs to, but not the cordon of a lock that stands. What
    /// is left on other objects is passed to `report` at once.
    ///
    /// # Errors
    /// If the Node or the Lease can't be read, or the Node can't be written.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What is set may still be removed.
    pub async fn clear(
        &self,
        node: &str,
        report: &dyn Fn(LeftBehind),
    ) -> Result<KeysCleared, Error> {
        let shown = || self.current_lock_id(node);
        let remove = async |set: &OtherObjects, ended: &str| {
            self.remove_from_others(node, set, ended, report).await
        };
        clear_keys(self.locks.requests(), node, shown, remove).await
    }

    /// Removes what is `set` on other objects, before the end of the lock `ended`, and returns what is left.
    async fn remove_from_others(
        &self,
        node: &str,
        set: &OtherObjects,
        ended: &str,
        report: &dyn Fn(LeftBehind),
    ) -> OtherObjects {
        let mut left = OtherObjects::default();
        if let Some(record) = &set.machine
            && !self
                .remove_machine_opt_outs(node, record, ended, report)
                .await
        {
            left.machine = Some(record.clone());
        }
        if set.medik8s_lease {
            left.medik8s_lease = !self.release_medik8s_lease(node, ended, report).await;
        }
        left
    }

    /// Deletes the medik8s Lease of `node` if a lock that has ended holds it, or the lock `ended`, which is to end. Returns
    /// whether no such lock holds it any more. If it can't be deleted, that is passed to `report`.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The Lease may still be deleted.
    pub async fn release_medik8s_lease(
        &self,
        node: &str,
        ended: &str,
        report: &dyn Fn(LeftBehind),
    ) -> bool {
        let shown = || self.current_lock_id(node);
        match release_medik8s_lease(self.locks.requests(), node, ended, shown).await {
            Ok(released) => released == LeaseReleased::Done,
            Err(error) => {
                report(LeftBehind::Medik8sLease(error.into()));
                false
            }
        }
    }
}
