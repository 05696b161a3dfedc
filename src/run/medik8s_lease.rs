//! The medik8s Lease of a Node, which a lock holds if the user names medik8s.

use maintenance_lease::{Error, NodeLease};
use other_tools::{
    KeysOfLock, LeaseHeld, LeaseReleased, hold_medik8s_lease, release_medik8s_lease,
};

use super::machines::{NotSet, words_of};
use super::session::Session;
use crate::words::{medik8s as words, node_keys};

impl Session<'_> {
    /// Takes the medik8s Lease for the lock in `lease`, of which its Node has a record.
    ///
    /// # Errors
    /// Why the lock does not hold it.
    pub(super) async fn hold_medik8s_lease(
        &self,
        lease: &NodeLease,
        of: KeysOfLock<'_>,
        is_held: impl AsyncFn() -> Result<bool, Error>,
    ) -> Result<(), NotSet> {
        let now = || self.locks.server_time().now();
        let is_hold = lease.is_hold();
        match hold_medik8s_lease(self.locks.requests(), of, now, is_held).await {
            Ok(LeaseHeld::Done) => {
                self.terminal.remark(words::held(of.node, is_hold));
                Ok(())
            }
            Ok(LeaseHeld::Busy(holder)) => Err(NotSet::refused(words::busy(&holder))),
            Ok(LeaseHeld::NoNamespace) => Err(NotSet::refused(words::no_namespace())),
            Ok(LeaseHeld::LockEnded) => Err(NotSet::refused(node_keys::lock_ended(is_hold))),
            Err(error) => Err(NotSet::of(error)),
        }
    }

    /// Deletes the medik8s Lease of `node` if a lock that has ended holds it, or the lock `ended`, which is to end. Returns
    /// whether no such lock holds it any more. Otherwise, it says why.
    pub(crate) async fn release_medik8s_lease(
        &self,
        node: &str,
        ended: &str,
        shown: impl AsyncFn() -> Result<Option<String>, Error>,
    ) -> bool {
        match release_medik8s_lease(self.locks.requests(), node, ended, shown).await {
            Ok(released) => released == LeaseReleased::Done,
            Err(error) => {
                let (left, hint) = words::left(node, &words_of(error), self.program);
                self.terminal.warn(left);
                self.terminal.hint(hint);
                false
            }
        }
    }
}
