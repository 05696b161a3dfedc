//! The held label: it tells other tools, on the Node, that the node is on hold. The hold itself is the Lease.

use std::cell::Cell;

use maintenance_lease::{Error, NodeLease};
use other_tools::{
    KeysOfLock, KeysRemoved, KeysSet, NodeKeys, OptOuts, has_cluster_api_machine, remove_keys,
    set_keys,
};

use super::session::Session;
use crate::error::Failure;
use crate::text::escape;
use crate::words::node_keys;

impl Session<'_> {
    /// Labels the Node of the hold in `lease`, sets `opt_outs` on it, and cordons it if `cordon` is set. Reports what could not be written:
    /// the hold counts without it. Returns whether the Node is cordoned if that was asked for.
    pub(crate) async fn set_held_label(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> bool {
        let node = lease.node();
        let failure = match self.write_held_label(lease, cordon, opt_outs).await {
            Ok(KeysSet::Done(conflicts)) => {
                for conflict in &conflicts {
                    let words = node_keys::conflict(conflict);
                    self.terminal.warn(format!("node/{node}: {words}"));
                }
                if cordon {
                    self.terminal.remark(node_keys::cordoned(node));
                }
                return true;
            }
            Ok(KeysSet::LockEnded) => node_keys::LOCK_ENDED.to_owned(),
            Ok(KeysSet::NodeGone) => node_keys::NODE_GONE.to_owned(),
            Err(error) => escape(&error.to_string()),
        };
        let text = node_keys::not_labelled(node, cordon, &failure);
        self.terminal.remark(text);
        !cordon
    }

    async fn write_held_label(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> Result<KeysSet, Error> {
        let (Some(lock_id), Some(uid)) = (lease.lock_id(), lease.node_uid()) else {
            return Ok(KeysSet::NodeGone);
        };
        let id = lock_id.to_string();
        let of = KeysOfLock {
            node: lease.node(),
            uid: &uid,
            lock_id: &id,
        };
        let of_cluster_api = Cell::new(false);
        let set = async |cordon| {
            let keys = |on: &_| {
                of_cluster_api.set(has_cluster_api_machine(on));
                let held = NodeKeys {
                    cordon,
                    ..NodeKeys::of_hold(lease)
                };
                held.and(opt_outs.keys(on))
            };
            let is_held = || self.is_on_hold(lease);
            set_keys(self.locks.requests(), of, keys, is_held).await
        };
        let result = match set(cordon).await {
            // A write that replaces the label of an earlier hold may not cordon.
            Err(Error::Api(error)) if cordon && error.is_by_policy() => {
                set(false).await?;
                set(true).await
            }
            result => result,
        };
        if of_cluster_api.get() && *opt_outs != OptOuts::None {
            let (node, warning) = (lease.node(), node_keys::CLUSTER_API);
            self.terminal.warn(format!("node/{node}: {warning}"));
        }
        result
    }

    /// Removes what [`set_held_label`](Self::set_held_label) wrote, before the hold `ending` is ended, and what is left of a
    /// lock that has ended. Without permission, it stays, and the hold can be ended all the same.
    ///
    /// # Errors
    /// If the Node can't be read or written.
    pub(crate) async fn remove_held_label(
        &self,
        node: &str,
        ending: Option<&NodeLease>,
    ) -> Result<(), Failure> {
        match self.remove_keys(node, ending).await {
            Ok(_) => Ok(()),
            Err(Error::Api(error)) if error.is_forbidden() => {
                let cause = escape(&error.to_string());
                self.terminal.remark(node_keys::label_stays(node, &cause));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same, with its result.
    ///
    /// # Errors
    /// The same, and a missing permission.
    pub(crate) async fn remove_keys(
        &self,
        node: &str,
        ending: Option<&NodeLease>,
    ) -> Result<KeysRemoved, Error> {
        let id = |lease: &NodeLease| Some(lease.lock_id()?.to_string());
        let shown = async || Ok(self.locks.get(node).await?.as_ref().and_then(id));
        let ending = ending.and_then(id);
        remove_keys(self.locks.requests(), node, ending.as_deref(), shown).await
    }

    /// Whether the hold in `lease` still stands.
    async fn is_on_hold(&self, lease: &NodeLease) -> Result<bool, Error> {
        let now = self.locks.get(lease.node()).await?;
        Ok(now.is_some_and(|now| now.is_hold() && now.lock_id() == lease.lock_id()))
    }
}
