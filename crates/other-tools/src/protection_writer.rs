//! Who writes what locks set on their Nodes, and what of it may be there.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{CLEANUP, Error, Maintenance, NodeLease, PROTECTION};

use crate::apply::{Conflict, KeysOfLock, KeysSet, check_keys, set_keys};
use crate::keys_on_node::current_lock_id;
use crate::node_keys::NodeKeys;
use crate::write_error::WriteError;

/// Writes what locks set on their Nodes.
pub struct ProtectionWriter<'a> {
    pub(crate) locks: &'a Maintenance,
}

impl<'a> ProtectionWriter<'a> {
    /// For these `locks`.
    #[must_use]
    pub fn new(locks: &'a Maintenance) -> Self {
        Self { locks }
    }

    /// The id of the lock that the Lease of `node` shows, unless it has expired.
    ///
    /// # Errors
    /// If the Lease can't be read.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub(crate) async fn current_lock_id(&self, node: &str) -> Result<Option<String>, Error> {
        let lease = self.locks.get(node).await?;
        let now = self.locks.server_time().now();
        Ok(current_lock_id(lease.as_ref(), now))
    }

    /// Writes the held label on the Node of the lock in `lease`, and what `keys` adds to it. Returns the keys that somebody else
    /// set to another value.
    pub(crate) async fn write_keys(
        &self,
        lease: &NodeLease,
        keys: impl Fn(&Node, &str) -> NodeKeys,
    ) -> Result<Vec<Conflict>, WriteError> {
        let (Some(lock_id), Some(uid)) = (lock_id(lease), lease.node_uid()) else {
            return Err(WriteError::NodeGone);
        };
        let of = KeysOfLock {
            node: lease.node(),
            uid: &uid,
            lock_id: &lock_id,
        };
        let keys = |on: &Node| NodeKeys::of_lock(lease).and(keys(on, &lock_id));
        let is_held = || self.still_shows(lease);
        let setting = set_keys(self.locks.requests(), of, keys, is_held);
        as_written(lease, setting.await)
    }

    /// Checks the same write in a dry run.
    pub(crate) async fn check_keys(
        &self,
        lease: &NodeLease,
        keys: impl Fn(&Node) -> NodeKeys,
    ) -> Result<Vec<Conflict>, WriteError> {
        // A dry run may return no lock id.
        let lock_id = lock_id(lease).unwrap_or_else(|| "none".to_owned());
        let keys = |on: &Node| NodeKeys::of_lock(lease).and(keys(on));
        let checking = check_keys(self.locks.requests(), lease.node(), &lock_id, keys);
        as_written(lease, checking.await.map_err(Error::Api))
    }

    /// Whether the Lease still shows the lock in `lease`.
    pub(crate) async fn still_shows(&self, lease: &NodeLease) -> Result<bool, Error> {
        let now = self.locks.get(lease.node()).await?;
        Ok(now.is_some_and(|now| {
            now.is_hold() == lease.is_hold() && now.lock_id() == lease.lock_id()
        }))
    }
}

fn as_written(
    lease: &NodeLease,
    result: Result<KeysSet, Error>,
) -> Result<Vec<Conflict>, WriteError> {
    match result {
        Ok(KeysSet::Done(conflicts)) => Ok(conflicts),
        Ok(KeysSet::LockEnded) => Err(WriteError::LockEnded {
            is_hold: lease.is_hold(),
        }),
        Ok(KeysSet::NodeGone) => Err(WriteError::NodeGone),
        Err(error) => Err(error.into()),
    }
}

/// Whether the lock in `lease` may have written something on its Node, or one that it replaced.
#[must_use]
pub fn may_have_keys(lease: &NodeLease) -> bool {
    lease.is_hold() || matches!(lease.purpose(), Some(PROTECTION | CLEANUP))
}

pub(crate) fn lock_id(lease: &NodeLease) -> Option<String> {
    Some(lease.lock_id()?.to_string())
}
