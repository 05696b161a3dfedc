//! The medik8s Lease of a Node, which a lock holds if the user names medik8s.

use maintenance_lease::{Error, NodeLease};
use other_tools::{
    KeysOfLock, LeaseHeld, LeaseReleased, hold_medik8s_lease, release_medik8s_lease,
};

use super::session::Session;
use crate::error::ProtectionError;
use crate::words::medik8s as words;

impl Session<'_> {
    /// Takes the medik8s Lease for the lock in `lease`, of which its Node has a record.
    ///
    /// # Errors
    /// Why the lock does not hold it.
    pub(super) async fn hold_medik8s_lease(
        &self,
        lease: &NodeLease,
        of: KeysOfLock<'_>,
    ) -> Result<(), ProtectionError> {
        let now = || self.locks.server_time().now();
        let (is_hold, is_held) = (lease.is_hold(), || self.still_shows(lease));
        match hold_medik8s_lease(self.locks.requests(), of, now, is_held).await {
            Ok(LeaseHeld::Done) => {
                self.terminal.remark(words::held(of.node, is_hold));
                Ok(())
            }
            Ok(LeaseHeld::Busy(holder)) => Err(ProtectionError::Medik8sLeaseTaken { holder }),
            Ok(LeaseHeld::NoNamespace) => Err(ProtectionError::NoMedik8sNamespace),
            Ok(LeaseHeld::LockEnded) => Err(ProtectionError::LockEnded { is_hold }),
            Err(error) => Err(error.into()),
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
                let (left, hint) = words::left(node, &error.into(), self.program);
                self.terminal.warn(left);
                self.terminal.hint(hint);
                false
            }
        }
    }
}
