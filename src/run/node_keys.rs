//! The keys that a hold sets on its Node, after the Lease was written, and their removal, before the Lease is.

use std::collections::BTreeMap;

use futures::future::join_all;
use maintenance_lease::{Change, Maintenance, NodeLease};
use other_tools::{KeysOfLock, KeysSet, OptOuts, has_cluster_api_machine, remove_keys, set_keys};

use super::lock_command::LockCommand;
use super::lock_set::Results;
use crate::error::Failure;
use crate::words::node_keys::{self as words, Note};

/// What to say about the keys, by node.
pub(crate) type Notes = BTreeMap<String, Vec<Note>>;

impl LockCommand<'_> {
    /// Sets `opt_outs` on the Nodes that are on hold now. A problem with that never fails the hold.
    pub(crate) async fn set_opt_outs(&self, results: &Results, opt_outs: &OptOuts) -> Notes {
        if *opt_outs == OptOuts::None || self.is_dry_run() || results.interrupted {
            return Notes::new();
        }
        let held = results.by_node.values().flatten();
        let setting = held.map(async |change| {
            let notes = self.set_on_node(change, opt_outs).await;
            (change.node.clone(), notes)
        });
        join_all(setting).await.into_iter().collect()
    }

    async fn set_on_node(&self, change: &Change, opt_outs: &OptOuts) -> Vec<Note> {
        let lease = change.lease.as_ref();
        let uid = lease.and_then(NodeLease::node_uid);
        let (Some(uid), Some(lock_id)) = (uid, change.lock_id().map(|id| id.to_string())) else {
            return vec![words::unread()];
        };
        let of = KeysOfLock {
            node: &change.node,
            lock_id: &lock_id,
            dry_run: false,
        };
        let locks = &self.session.locks;
        let unprotected = std::cell::Cell::new(false);
        let keys = |node: &_| {
            unprotected.set(has_cluster_api_machine(node));
            opt_outs.keys(node)
        };
        let is_held = async || is_held(locks, of).await;
        let set = set_keys::<Failure>(locks.requests(), of, &uid, keys, is_held).await;
        let mut notes: Vec<Note> = match &set {
            Ok(KeysSet::Done(conflicts)) => conflicts.iter().map(words::conflict).collect(),
            Ok(KeysSet::NodeGone) => vec![words::node_gone()],
            Ok(KeysSet::LockEnded) => vec![words::lock_ended()],
            Err(failure) => vec![words::not_set(failure)],
        };
        if unprotected.get() {
            notes.push(words::cluster_api());
        }
        notes
    }

    /// Removes the keys of the hold `lease`, which is about to end. A problem with that never keeps the hold
    /// from ending, and is reported.
    pub(crate) async fn remove_node_keys(&self, lease: &NodeLease) {
        let Some(lock_id) = lease.lock_id().map(|id| id.to_string()) else {
            return;
        };
        if self.is_dry_run() {
            return;
        }
        let of = KeysOfLock {
            node: lease.node(),
            lock_id: &lock_id,
            dry_run: false,
        };
        let locks = &self.session.locks;
        let is_held = async || is_held(locks, of).await;
        if let Err(failure) = remove_keys::<Failure>(locks.requests(), of, is_held).await {
            let note = words::not_removed(&failure);
            let text = format!("node/{}: {}", of.node, note.text);
            self.session.terminal.warn(text);
        }
    }
}

/// Whether the Lease still shows this lock id.
async fn is_held(locks: &Maintenance, of: KeysOfLock<'_>) -> Result<bool, Failure> {
    let lease = locks.get(of.node).await?;
    let lock_id = lease.and_then(|lease| lease.lock_id());
    Ok(lock_id.is_some_and(|id| id.to_string() == of.lock_id))
}
