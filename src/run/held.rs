//! The held label: it tells other tools, on the Node, that the node is on hold. The hold itself is the Lease.

use maintenance_lease::{Error, NodeLease};
use other_tools::{KeysOfLock, KeysSet, NodeKeys, remove_keys, set_keys};

use super::session::Session;
use crate::error::Failure;
use crate::text::escape;

impl Session<'_> {
    /// Labels the Node of the hold in `lease`, and cordons it if `cordon` is set. Reports what could not be written:
    /// the hold counts without it. Returns whether the Node is cordoned if that was asked for.
    pub(crate) async fn set_held_label(&self, lease: &NodeLease, cordon: bool) -> bool {
        let node = lease.node();
        let failure = match self.write_held_label(lease, cordon).await {
            Ok(KeysSet::Done(_)) => {
                if cordon {
                    self.terminal.remark(format!(
                        "node/{node} cordoned until the hold ends; `kubectl drain` still evicts its pods"
                    ));
                }
                return true;
            }
            Ok(KeysSet::LockEnded) => "its hold has ended or is being ended".to_owned(),
            Ok(KeysSet::NodeGone) => "the Node is gone or unknown".to_owned(),
            Err(error) => escape(&error.to_string()),
        };
        let missing = match cordon {
            true => "without the held label and not cordoned",
            false => "without the held label",
        };
        let text = format!("node/{node} is on hold {missing}: {failure}");
        self.terminal.remark(text);
        !cordon
    }

    async fn write_held_label(&self, lease: &NodeLease, cordon: bool) -> Result<KeysSet, Error> {
        let (Some(lock_id), Some(uid)) = (lease.lock_id(), lease.node_uid()) else {
            return Ok(KeysSet::NodeGone);
        };
        let id = lock_id.to_string();
        let of = KeysOfLock {
            node: lease.node(),
            lock_id: &id,
            dry_run: false,
        };
        let set = async |cordon| {
            let keys = NodeKeys {
                cordon,
                ..NodeKeys::of_hold(lease)
            };
            let is_held = || self.is_on_hold(lease);
            set_keys(self.locks.requests(), of, &uid, &keys, is_held).await
        };
        match set(cordon).await {
            // A write that replaces the label of an earlier hold may not cordon.
            Err(Error::Api(error)) if cordon && error.is_by_policy() => {
                set(false).await?;
                set(true).await
            }
            result => result,
        }
    }

    /// Removes what [`set_held_label`](Self::set_held_label) wrote, before the hold in `lease` is ended. Without
    /// permission, the label stays, and the hold can be ended all the same.
    ///
    /// # Errors
    /// If the Node can't be read or written.
    pub(crate) async fn remove_held_label(&self, lease: &NodeLease) -> Result<(), Failure> {
        let Some(lock_id) = lease.lock_id() else {
            return Ok(());
        };
        let of = KeysOfLock {
            node: lease.node(),
            lock_id: &lock_id.to_string(),
            dry_run: false,
        };
        let is_held = || self.is_on_hold(lease);
        match remove_keys(self.locks.requests(), of, is_held).await {
            Ok(_) => Ok(()),
            Err(Error::Api(error)) if error.is_forbidden() => {
                self.terminal.remark(format!(
                    "node/{}: if it has a held label, that stays: {}",
                    lease.node(),
                    escape(&error.to_string())
                ));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the hold in `lease` still stands.
    async fn is_on_hold(&self, lease: &NodeLease) -> Result<bool, Error> {
        let now = self.locks.get(lease.node()).await?;
        Ok(now.is_some_and(|now| now.is_hold() && now.lock_id() == lease.lock_id()))
    }
}
