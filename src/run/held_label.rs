//! What a lock writes on its Node: the held label, opt-outs, a cordon and the record of its Machine. The lock itself is the Lease.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{CLEANUP, Change, Done, Error, HeldLease, NodeLease, PROTECTION};
use other_tools::{
    Conflict, HELD, KeysCleared, KeysOfLock, KeysOnNode, KeysRemoved, KeysSet, MEDIK8S,
    MachineRecord, MachineRef, NodeKeys, OtherObjects, clear_keys, current_lock_id, machine_of,
    remove_keys, remove_records, set_keys,
};
use tokio::time::timeout;

use super::machine_opt_outs::MachineSeen;
use super::session::Session;
use crate::args::protect::Protection;
use crate::error::{Kind, ProtectionError};
use crate::words::other_tools::sentence;
use crate::words::{machine, node_keys};

/// What a lock writes on its Node besides the label.
#[derive(Default)]
struct Written {
    keys: NodeKeys,
    /// The Machine that gets opt-outs, or why it does not.
    machine: Option<(MachineRef, Result<MachineSeen, ProtectionError>)>,
    /// The tools with opt-outs on Machines that the user named, and that have none for this Node.
    without_machine: Vec<&'static str>,
    /// What the Node had records of before.
    before: Option<OtherObjects>,
}

/// Whether the lock in `lease` may have written something on its Node, or one that it replaced.
pub(crate) fn is_protected(lease: &NodeLease) -> bool {
    lease.is_hold() || matches!(lease.purpose(), Some(PROTECTION | CLEANUP))
}

/// What was wanted on the Node of a lock, and is there.
pub(crate) struct Protected {
    pub(crate) node: String,
    pub(crate) is_labeled: bool,
    /// Why the command fails: without the cordon, or in strict mode without the opt-outs on the Machine.
    pub(crate) failed: Option<Kind>,
}

impl Session<'_> {
    /// Writes on the Nodes of the locks in `changes` what is `wanted`, and returns what is there. A lock that was renewed
    /// moves the end that its label shows. Otherwise, what an earlier lock left behind is removed.
    pub(crate) async fn protect(
        &self,
        changes: &[Change],
        wanted: Option<&Protection>,
        parallel: u16,
    ) -> Vec<Protected> {
        let writing = changes.iter().map(|change| async move {
            let begins = matches!(change.done, Done::Acquired | Done::Renewed);
            let lease = change.lease.as_ref().filter(|_| begins)?;
            let now = self.locks.server_time().now();
            let limit = lease.report_limit(now).unwrap_or(Duration::MAX);
            match wanted {
                Some(wanted) => {
                    let setting = timeout(limit, self.set_held_label(lease, wanted)).await;
                    Some(setting.unwrap_or_else(|_| self.not_set_in_time(lease, wanted, limit)))
                }
                None => {
                    if timeout(limit, self.update_node(change)).await.is_err() {
                        let error = ProtectionError::TooSlow(limit);
                        let words = node_keys::end_not_moved(lease.node(), &error);
                        self.terminal.warn(words);
                    }
                    None
                }
            }
        });
        let parallel = usize::from(parallel);
        let written: Vec<_> = stream::iter(writing).buffered(parallel).collect().await;
        written.into_iter().flatten().collect()
    }

    /// Moves the end in the labels of the locks in `held` whenever they are renewed.
    pub(crate) async fn follow_ends(&self, held: &[HeldLease]) -> Infallible {
        join_all(held.iter().map(|held| async move {
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

    /// Labels the Node of the lock in `lease`, and sets on it and on its Machine what is `wanted`. Reports what could not be
    /// written: the lock counts without it. Returns what is there.
    pub(crate) async fn set_held_label(&self, lease: &NodeLease, wanted: &Protection) -> Protected {
        let node = lease.node();
        let cordon = wanted.cordon;
        let written = RefCell::new(Written::default());
        let result = self.write_held_label(lease, wanted, &written).await;
        let written = written.into_inner();
        let failure = match conflicts(lease, result) {
            Ok(conflicts) => {
                let mut set = written.keys.clone();
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
                None
            }
            Err(error) => {
                self.report_not_labeled(lease, cordon, &error);
                Some(error)
            }
        };
        let mut protected = Protected {
            node: node.to_owned(),
            is_labeled: failure.is_none(),
            failed: failure.as_ref().filter(|_| cordon).map(|_| Kind::Other),
        };
        let is_unprotected = self.protect_other_objects(lease, wanted, &written, failure.as_ref());
        if is_unprotected.await && wanted.strict {
            protected.failed = protected.failed.max(Some(Kind::Unsafe));
        }
        protected
    }

    /// Sets what is `wanted` on other objects than the Node, which has the records of it unless that was a `failure`. Reports
    /// what is not set, and returns whether there is such a thing.
    async fn protect_other_objects(
        &self,
        lease: &NodeLease,
        wanted: &Protection,
        written: &Written,
        failure: Option<&ProtectionError>,
    ) -> bool {
        let node = lease.node();
        let mut is_unprotected = false;
        let mut warn = |warning: String| {
            is_unprotected = true;
            self.terminal.warn(format!("node/{node}: {warning}"));
        };
        for tool in &written.without_machine {
            warn(machine::unprotected(tool, ProtectionError::NotNamed));
        }
        // An earlier lock may have left something there.
        let before = written.before.clone().unwrap_or_default();
        let mut refused = OtherObjects::default();
        if let Some((of, seen)) = &written.machine {
            let tool = of.api.tool;
            match (seen, failure) {
                // Without the record on the Node, nobody would know what to remove.
                (Err(error), _) | (Ok(_), Some(error)) => warn(machine::unprotected(tool, error)),
                (Ok(seen), None) => {
                    self.warn_of_machine(node, seen);
                    if let Err(error) = self.set_machine_opt_outs(lease, seen).await {
                        let record = seen.record();
                        let earlier = before.machine;
                        let was_there = earlier.is_some_and(|it| it.is_of_same(&record));
                        let is_unset = error.is_certain() && !was_there;
                        refused.machine = is_unset.then(|| Box::new(record));
                        warn(machine::not_set(tool, &error));
                    }
                }
            }
        }
        let id = lease.lock_id().map(|id| id.to_string());
        let uid = lease.node_uid();
        let of = KeysOfLock {
            node,
            uid: uid.as_deref().unwrap_or_default(),
            lock_id: id.as_deref().unwrap_or_default(),
        };
        if wanted.opt_outs.include_medik8s_lease() {
            match failure {
                Some(error) => warn(machine::unprotected(MEDIK8S, error)),
                None => {
                    if let Err(error) = self.hold_medik8s_lease(lease, of).await {
                        refused.medik8s_lease = error.is_certain() && !before.medik8s_lease;
                        warn(machine::not_set(MEDIK8S, &error));
                    }
                }
            }
        }
        if !refused.is_empty() {
            // If it stays, the end of the lock finds nothing there, and removes it.
            let _ = remove_records(self.locks.requests(), of, &refused).await;
        }
        is_unprotected
    }

    fn report_not_labeled(&self, lease: &NodeLease, cordon: bool, error: &ProtectionError) {
        let text = node_keys::not_labeled(lease, cordon, error);
        match cordon {
            true => self.terminal.error(&text),
            false => self.terminal.warn(text),
        }
    }

    /// A lock that is reported must last long enough to work under it.
    fn not_set_in_time(
        &self,
        lease: &NodeLease,
        wanted: &Protection,
        limit: Duration,
    ) -> Protected {
        self.report_not_labeled(lease, wanted.cordon, &ProtectionError::TooSlow(limit));
        let failed = wanted.cordon.then_some(Kind::Other);
        Protected {
            node: lease.node().to_owned(),
            is_labeled: false,
            failed: failed.max(wanted.strict.then_some(Kind::Unsafe)),
        }
    }

    fn warn_of_machine(&self, node: &str, seen: &MachineSeen) {
        let now = self.locks.server_time().now();
        for finding in seen.findings() {
            let words = sentence(&finding, now);
            self.terminal.warn(format!("node/{node}: {words}"));
        }
    }

    /// Writes the label, the opt-outs on the Node, and the cordon. What was written besides the label, and the Machine that was
    /// read for its record, is in `written` then.
    async fn write_held_label(
        &self,
        lease: &NodeLease,
        wanted: &Protection,
        written: &RefCell<Written>,
    ) -> Result<KeysSet, Error> {
        let set = async |cordon| {
            let keys = async |on: &Node, id: &str| {
                let mut keys = NodeKeys {
                    cordon,
                    ..wanted.opt_outs.keys(on)
                };
                let machine = machine_of(on);
                let without_machine = wanted.opt_outs.without_machine(machine.as_ref());
                let machine = machine.filter(|machine| wanted.opt_outs.include(machine));
                // This lock has set them before, with the context.
                let is_set = || {
                    NodeKeys::opt_outs_of(id, on)
                        .other_objects
                        .machine
                        .is_some()
                };
                let machine = machine.filter(|_| self.management.given.is_some() || !is_set());
                keys.other_objects.medik8s_lease = wanted.opt_outs.include_medik8s_lease();
                let before = written.borrow().before.clone();
                let before = before.unwrap_or_else(|| OtherObjects::on(on));
                let known = written.borrow_mut().machine.take();
                let seen = match (machine, known) {
                    (Some(machine), None) => {
                        let seen = match self.see_machine(lease.node(), &machine).await {
                            Ok(seen) => self.replacing_earlier(on, lease.node(), seen).await,
                            unseen => unseen,
                        };
                        Some((machine, seen))
                    }
                    (_, known) => known,
                };
                let read = seen.as_ref().and_then(|(_, seen)| seen.as_ref().ok());
                keys.other_objects.machine = read.map(MachineSeen::record).map(Box::new);
                written.replace(Written {
                    keys: keys.clone(),
                    machine: seen,
                    without_machine,
                    before: Some(before),
                });
                keys
            };
            self.write_keys(lease, keys).await
        };
        match set(wanted.cordon).await {
            // A write that replaces the label of an earlier lock may not cordon.
            Err(Error::Api(error)) if wanted.cordon && error.is_by_policy() => {
                set(false).await?;
                set(true).await
            }
            result => result,
        }
    }

    /// Removes the opt-outs on the Machine that the Node has a record of, if it is another one than the Machine `seen`: there
    /// is one record, and without it nobody would know of them.
    async fn replacing_earlier(
        &self,
        on: &Node,
        node: &str,
        seen: MachineSeen,
    ) -> Result<MachineSeen, ProtectionError> {
        let record = seen.record();
        let earlier = MachineRecord::on(on).filter(|earlier| !earlier.is_of_same(&record));
        let Some(earlier) = earlier else {
            return Ok(seen);
        };
        let lock_id = KeysOnNode::of(on).and_then(|keys| keys.lock_id);
        let shown = || self.current_lock_id(node);
        let ended = lock_id.unwrap_or_default();
        match self
            .remove_machine_opt_outs(node, &earlier, &ended, shown)
            .await
        {
            true => Ok(seen),
            false => Err(ProtectionError::EarlierMachine(Box::new(earlier))),
        }
    }

    /// Writes the held label, and what `keys` adds to it.
    async fn write_keys(
        &self,
        lease: &NodeLease,
        keys: impl AsyncFn(&Node, &str) -> NodeKeys,
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
        let keys = async |on: &Node| NodeKeys::of_lock(lease).and(keys(on, &id).await);
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
            None => self.remove_earlier(change).await,
        }
    }

    /// Moves the end in the held label of the lock in `lease`, which was renewed. Reports why if that fails.
    async fn move_end(&self, lease: &NodeLease) {
        let opt_outs = async |on: &Node, id: &str| NodeKeys::opt_outs_of(id, on);
        let written = self.write_keys(lease, opt_outs).await;
        if let Err(error) = conflicts(lease, written) {
            self.terminal
                .warn(node_keys::end_not_moved(lease.node(), &error));
        }
    }

    /// Removes what earlier locks left on the Node of the lock in `change`, and reports it: the node may be schedulable
    /// again. An earlier end may have failed to remove it, or there was none because the Lease was deleted. Then only the
    /// Node shows it.
    async fn remove_earlier(&self, change: &Change) {
        let before = change.before.as_ref();
        let before = before.filter(|before| is_protected(before));
        let row = change.row.as_ref();
        let is_labeled = row.is_some_and(|row| row.labels.contains_key(HELD));
        if before.is_none() && !is_labeled {
            return;
        }
        let node = &change.node;
        match self.remove_keys(node, before).await {
            Ok(KeysRemoved::Done(keys)) => {
                self.terminal
                    .remark(node_keys::earlier_removed(node, &keys));
            }
            Ok(KeysRemoved::Nothing | KeysRemoved::StillHeld) => {}
            Err(error) => {
                let error = ProtectionError::Node(Arc::new(error));
                self.report_left(node, false, &error);
            }
        }
    }

    /// Reports why what a lock set stays on its Node, and what removes it. If the Lease `is_free` then, `unhold` does.
    pub(crate) fn report_left(&self, node: &str, is_free: bool, error: &ProtectionError) {
        self.terminal.warn(node_keys::keys_stay(node, error));
        let program = self.program;
        self.terminal
            .hint(node_keys::to_remove_left(node, is_free, error, program));
    }

    /// As [`remove_held_label`](Self::remove_held_label), and reports why if that fails, as
    /// [`report_left`](Self::report_left).
    pub(crate) async fn try_remove_held_label(&self, lease: &NodeLease, is_free: bool) {
        if let Err(error) = self.remove_held_label(lease.node(), Some(lease)).await {
            self.report_left(lease.node(), is_free, &error.into());
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
    ) -> Result<(), Error> {
        match self.remove_keys(node, ending).await {
            Ok(KeysRemoved::Done(keys)) if keys.cordon => {
                self.terminal.remark(node_keys::uncordoned(node));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(Error::Api(error)) if error.is_forbidden() => {
                self.report_left(node, true, &Error::Api(error).into());
                Ok(())
            }
            Err(error) => Err(error),
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
        let shown = || self.current_lock_id(node);
        let ending = ending.and_then(id);
        let remove_other_objects = async |other_objects: &OtherObjects, ended: &str| {
            self.remove_other_objects(node, other_objects, ended, shown)
                .await
        };
        let requests = self.locks.requests();
        remove_keys(
            requests,
            node,
            ending.as_deref(),
            shown,
            remove_other_objects,
        )
        .await
    }

    /// Removes everything that locks wrote on the Node, whatever lock it belongs to, but not the cordon of a lock that stands.
    ///
    /// # Errors
    /// If the Node can't be read or written.
    pub(crate) async fn clear_keys(&self, node: &str) -> Result<KeysCleared, Error> {
        let shown = || self.current_lock_id(node);
        let remove_other_objects = async |other_objects: &OtherObjects, ended: &str| {
            self.remove_other_objects(node, other_objects, ended, shown)
                .await
        };
        clear_keys(self.locks.requests(), node, shown, remove_other_objects).await
    }

    /// Removes what is on `other_objects`, before the end of the lock `ended`, and returns what is left. Says why.
    async fn remove_other_objects(
        &self,
        node: &str,
        other_objects: &OtherObjects,
        ended: &str,
        shown: impl AsyncFn() -> Result<Option<String>, Error>,
    ) -> OtherObjects {
        let mut left = OtherObjects::default();
        if let Some(record) = &other_objects.machine
            && !self
                .remove_machine_opt_outs(node, record, ended, &shown)
                .await
        {
            left.machine = Some(record.clone());
        }
        if other_objects.medik8s_lease {
            left.medik8s_lease = !self.release_medik8s_lease(node, ended, &shown).await;
        }
        left
    }

    /// The id of the lock that the Lease shows, unless it has expired.
    ///
    /// # Errors
    /// If the Lease can't be read.
    pub(crate) async fn current_lock_id(&self, node: &str) -> Result<Option<String>, Error> {
        let lease = self.locks.get(node).await?;
        let now = self.locks.server_time().now();
        Ok(current_lock_id(lease.as_ref(), now))
    }

    /// Whether the Lease still shows the lock in `lease`.
    pub(super) async fn still_shows(&self, lease: &NodeLease) -> Result<bool, Error> {
        let now = self.locks.get(lease.node()).await?;
        Ok(now.is_some_and(|now| {
            now.is_hold() == lease.is_hold() && now.lock_id() == lease.lock_id()
        }))
    }
}

/// The keys that somebody else set to another value, or why none was written.
fn conflicts(
    lease: &NodeLease,
    result: Result<KeysSet, Error>,
) -> Result<Vec<Conflict>, ProtectionError> {
    let is_hold = lease.is_hold();
    match result {
        Ok(KeysSet::Done(conflicts)) => Ok(conflicts),
        Ok(KeysSet::LockEnded) => Err(ProtectionError::LockEnded { is_hold }),
        Ok(KeysSet::NodeGone) => Err(ProtectionError::NodeGone),
        Err(error) => Err(ProtectionError::Node(Arc::new(error))),
    }
}
