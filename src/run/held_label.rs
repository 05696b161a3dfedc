//! What a lock writes on its Node: the held label, opt-outs and a cordon. The lock itself is the Lease.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::pending;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{CLEANUP, Change, Done, Error, HeldLease, NodeLease, PROTECTION};
use other_tools::{
    KeysOfLock, KeysRemoved, KeysSet, NodeKeys, OptOuts, clear_keys, has_cluster_api_machine,
    remove_keys, set_keys, standing_lock_id,
};

use super::session::Session;
use crate::args::protect::Protection;
use crate::error::Failure;
use crate::text::escape;
use crate::words::node_keys;

/// Whether the lock in `lease` may have written something on its Node, or one that it replaced.
pub(crate) fn is_protected(lease: &NodeLease) -> bool {
    lease.is_hold() || matches!(lease.purpose(), Some(PROTECTION | CLEANUP))
}

/// What was wanted on the Node of a lock, and is there.
pub(crate) struct Protected {
    pub(crate) node: String,
    pub(crate) is_labelled: bool,
    /// Whether the Node is cordoned, or that was not wanted.
    pub(crate) is_done: bool,
}

impl Session<'_> {
    /// Writes on the Nodes of the locks in `changes` what is `wanted`, and returns what is there. A lock that was renewed
    /// moves the end that its label shows. Otherwise, what a lock that had expired left behind is removed.
    pub(crate) async fn protect(
        &self,
        changes: &[Change],
        wanted: Option<&Protection>,
        parallel: u16,
    ) -> Vec<Protected> {
        let writing = changes.iter().map(|change| async move {
            let lease = change.lease.as_ref();
            let begins = matches!(change.done, Done::Acquired | Done::Renewed);
            match (lease.filter(|_| begins), wanted) {
                (Some(lease), Some(wanted)) => {
                    let is_labelled = self
                        .set_held_label(lease, wanted.cordon, &wanted.opt_outs)
                        .await;
                    Some(Protected {
                        node: change.node.clone(),
                        is_labelled,
                        is_done: is_labelled || !wanted.cordon,
                    })
                }
                (Some(_), None) => {
                    self.update_node(change).await;
                    None
                }
                (None, _) => None,
            }
        });
        let parallel = usize::from(parallel);
        let written: Vec<_> = stream::iter(writing).buffered(parallel).collect().await;
        written.into_iter().flatten().collect()
    }

    /// Moves the end in the labels of the locks in `held` whenever they are renewed.
    pub(crate) async fn follow_ends(&self, held: &[HeldLease]) -> Infallible {
        let acquired = held.iter().filter(|held| !held.was_found());
        join_all(acquired.map(|held| async move {
            let mut state = held.held_state();
            while state.lost.is_none() {
                let before = state.lease.end();
                if state.lease.purpose() != Some(PROTECTION) {
                    return;
                }
                state = held.changed(&state).await;
                if state.lost.is_none() && state.lease.end() > before {
                    self.move_end(&state.lease).await;
                }
            }
        }))
        .await;
        pending().await
    }

    /// Labels the Node of the lock in `lease`, sets `opt_outs` on it, and cordons it if `cordon` is set. Reports what
    /// could not be written: the lock counts without it. Returns whether it is there.
    pub(crate) async fn set_held_label(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> bool {
        let node = lease.node();
        let set = RefCell::new(NodeKeys::default());
        let failure = match self.write_held_label(lease, cordon, opt_outs, &set).await {
            Ok(KeysSet::Done(conflicts)) => {
                let mut set = set.take();
                for conflict in &conflicts {
                    set.labels.remove(&conflict.key);
                    set.annotations.remove(&conflict.key);
                    let words = node_keys::conflict(conflict);
                    self.terminal.warn(format!("node/{node}: {words}"));
                }
                if cordon || lease.purpose() == Some(PROTECTION) {
                    let is_hold = lease.is_hold();
                    self.terminal
                        .remark(node_keys::protected(node, is_hold, &set));
                }
                return true;
            }
            result => words_of_failure(lease, result),
        };
        let text = node_keys::not_labelled(node, lease.is_hold(), cordon, &failure);
        self.terminal.remark(text);
        false
    }

    /// Writes the label, `opt_outs` and the cordon. What was written besides the label is in `written` then.
    async fn write_held_label(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
        written: &RefCell<NodeKeys>,
    ) -> Result<KeysSet, Error> {
        let of_cluster_api = Cell::new(false);
        let set = async |cordon| {
            let keys = |on: &Node, _: &str| {
                of_cluster_api.set(has_cluster_api_machine(on));
                let keys = NodeKeys {
                    cordon,
                    ..opt_outs.keys(on)
                };
                written.replace(keys.clone());
                keys
            };
            self.write_keys(lease, keys).await
        };
        let result = match set(cordon).await {
            // A write that replaces the label of an earlier lock may not cordon.
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

    /// Writes the held label, and what `keys` adds to it.
    async fn write_keys(
        &self,
        lease: &NodeLease,
        keys: impl Fn(&Node, &str) -> NodeKeys,
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
        let keys = |on: &Node| NodeKeys::of_lock(lease).and(keys(on, &id));
        let is_held = || self.still_shows(lease);
        set_keys(self.locks.requests(), of, keys, is_held).await
    }

    /// Moves the end that the label of the lock in `change` shows, if the lock was renewed. If it has no label, what an
    /// earlier lock left behind is removed.
    pub(crate) async fn update_node(&self, change: &Change) {
        let renewed = change
            .lease
            .as_ref()
            .filter(|_| change.done == Done::Renewed);
        match renewed.filter(|lease| lease.purpose() == Some(PROTECTION)) {
            Some(lease) => self.move_end(lease).await,
            None => self.remove_expired(change).await,
        }
    }

    /// Moves the end in the held label of the lock in `lease`, which was renewed. Reports why if that fails.
    async fn move_end(&self, lease: &NodeLease) {
        let opt_outs = |on: &Node, id: &str| NodeKeys::opt_outs_of(id, on);
        match self.write_keys(lease, opt_outs).await {
            Ok(KeysSet::Done(_)) => {}
            result => {
                let failure = words_of_failure(lease, result);
                self.terminal
                    .remark(node_keys::end_not_moved(lease.node(), &failure));
            }
        }
    }

    /// Removes what the lock that `change` replaced left on the Node, and reports it: the node may be schedulable again.
    async fn remove_expired(&self, change: &Change) {
        let before = change.before.as_ref();
        let Some(before) = before.filter(|before| is_protected(before)) else {
            return;
        };
        let node = before.node();
        match self.remove_keys(node, Some(before)).await {
            Ok(KeysRemoved::Done(keys)) => {
                self.terminal
                    .remark(node_keys::expired_removed(node, &keys));
            }
            Ok(KeysRemoved::Nothing | KeysRemoved::StillHeld) => {}
            Err(error) => {
                let cause = escape(&error.to_string());
                self.terminal.remark(node_keys::label_stays(node, &cause));
            }
        }
    }

    /// As [`remove_held_label`](Self::remove_held_label), and reports why if that fails.
    pub(crate) async fn try_remove_held_label(&self, lease: &NodeLease) {
        if let Err(failure) = self.remove_held_label(lease.node(), Some(lease)).await {
            let cause = escape(&failure.to_string());
            let text = node_keys::label_stays(lease.node(), &cause);
            self.terminal.remark(text);
        }
    }

    /// Removes what [`set_held_label`](Self::set_held_label) wrote, before the lock `ending` is ended, and what is left of a
    /// lock that has ended. Without permission, it stays, and the lock can be ended all the same.
    ///
    /// # Errors
    /// If the Node can't be read or written.
    pub(crate) async fn remove_held_label(
        &self,
        node: &str,
        ending: Option<&NodeLease>,
    ) -> Result<(), Failure> {
        match self.remove_keys(node, ending).await {
            Ok(KeysRemoved::Done(keys)) if keys.cordon => {
                self.terminal.remark(node_keys::uncordoned(node));
                Ok(())
            }
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
        // A lock without a label of its own leaves no trace on the Node.
        let ending = ending.filter(|lease| lease.purpose() != Some(CLEANUP));
        let shown = || self.standing_lock_id(node);
        let ending = ending.and_then(id);
        remove_keys(self.locks.requests(), node, ending.as_deref(), shown).await
    }

    /// Removes everything that locks wrote on the Node, whatever lock it belongs to, but not the cordon of a lock that stands.
    ///
    /// # Errors
    /// If the Node can't be read or written.
    pub(crate) async fn clear_keys(&self, node: &str) -> Result<KeysRemoved, Error> {
        let shown = || self.standing_lock_id(node);
        clear_keys(self.locks.requests(), node, shown).await
    }

    /// The id of the lock that the Lease shows, unless it has expired.
    async fn standing_lock_id(&self, node: &str) -> Result<Option<String>, Error> {
        let lease = self.locks.get(node).await?;
        let now = self.locks.server_time().now();
        Ok(standing_lock_id(lease.as_ref(), now))
    }

    /// Whether the Lease still shows the lock in `lease`.
    async fn still_shows(&self, lease: &NodeLease) -> Result<bool, Error> {
        let now = self.locks.get(lease.node()).await?;
        Ok(now.is_some_and(|now| {
            now.is_hold() == lease.is_hold() && now.lock_id() == lease.lock_id()
        }))
    }
}

/// Why the keys were not written.
fn words_of_failure(lease: &NodeLease, result: Result<KeysSet, Error>) -> String {
    match result {
        Ok(KeysSet::LockEnded) => node_keys::lock_ended(lease.is_hold()),
        Ok(KeysSet::NodeGone | KeysSet::Done(_)) => node_keys::NODE_GONE.to_owned(),
        Err(error) => escape(&error.to_string()),
    }
}
