//! What a lock sets besides its Lease: the held label, opt-outs and a cordon. The library writes it, and this says the outcome.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use maintenance_lease::{
    ApiError, Change, Done, Error, HeldLease, Maintenance, NodeLease, PROTECTION,
};
use other_tools::{
    Conflict, KeysRemoved, NodeKeys, NodeUpdate, ProtectionWriter, WriteError, may_have_keys,
};
use tokio::time::timeout;

use super::session::{PARALLEL, Session};
use crate::args::protect::Protection;
use crate::error::{Failure, Kind, ProtectionError};
use crate::words::node_keys;

/// What was wanted on the Node of a lock, and is there.
pub(crate) struct Protected {
    pub(crate) node: String,
    pub(crate) is_labeled: bool,
    /// The cordon that was wanted is missing, so the command fails.
    pub(crate) is_uncordoned: bool,
}

impl Protected {
    fn of(lease: &NodeLease, wanted: &Protection, is_labeled: bool) -> Self {
        Self {
            node: lease.node().to_owned(),
            is_labeled,
            is_uncordoned: wanted.cordon && !is_labeled,
        }
    }
}

/// # Errors
/// If a cordon that was wanted is missing. It is reported already.
pub(crate) fn must_be_protected(protected: &[Protected]) -> Result<(), Failure> {
    match protected.iter().any(|it| it.is_uncordoned) {
        true => Err(Failure::Reported(Kind::Other)),
        false => Ok(()),
    }
}

/// The Lease of a lock that was acquired or renewed.
fn begun(change: &Change) -> Option<&NodeLease> {
    let begins = matches!(change.done, Done::Acquired | Done::Renewed);
    change.lease.as_ref().filter(|_| begins)
}

impl Session<'_> {
    /// What writes on Nodes. It reports nothing by itself.
    fn protection(&self) -> ProtectionWriter<'_> {
        ProtectionWriter::new(&self.locks)
    }

    /// Writes on the Nodes of the locks in `changes` what is `wanted`, and returns what is there. A lock that was renewed
    /// moves the end that its label shows. Otherwise, what an earlier lock left behind is removed.
    pub(crate) async fn protect(
        &self,
        changes: &[Change],
        wanted: Option<&Protection>,
    ) -> Vec<Protected> {
        let writing = changes.iter().map(|change| async move {
            let lease = begun(change)?;
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
        let written: Vec<_> = stream::iter(writing).buffered(PARALLEL).collect().await;
        written.into_iter().flatten().collect()
    }

    fn report_conflicts(&self, node: &str, conflicts: &[Conflict]) {
        for conflict in conflicts {
            let conflict = node_keys::conflict(conflict);
            self.terminal.warn(format!("node/{node}: {conflict}"));
        }
    }

    /// Moves the end in the labels of the locks in `held` whenever they are renewed.
    pub(crate) async fn follow_ends(&self, held: &[HeldLease]) -> Infallible {
        let writer = self.protection();
        let report = |node: &str, error| self.report_end_not_moved(node, error);
        let following = held.iter().map(|held| writer.follow_end(held, &report));
        join_all(following).await;
        pending().await
    }

    /// Labels the Node of the lock in `lease`, and sets on it what is `wanted`. Reports what could not be written: the lock
    /// counts without it. Returns what is there.
    pub(crate) async fn set_held_label(&self, lease: &NodeLease, wanted: &Protection) -> Protected {
        let (node, cordon) = (lease.node(), wanted.cordon);
        let writer = self.protection();
        let protected = writer.protect(lease, cordon, &wanted.opt_outs).await;
        let is_labeled = protected.is_ok();
        match protected {
            Ok(protected) => {
                self.report_conflicts(node, &protected.conflicts);
                if cordon || lease.purpose() == Some(PROTECTION) {
                    let words = node_keys::protected(node, lease.is_hold(), &protected);
                    self.terminal.remark(words);
                }
            }
            Err(error) => self.report_not_labeled(lease, cordon, &error.into()),
        }
        Protected::of(lease, wanted, is_labeled)
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
        let error = ProtectionError::TooSlow(limit);
        self.report_not_labeled(lease, wanted.cordon, &error);
        Protected::of(lease, wanted, false)
    }

    /// Moves the end that the label of the lock in `change` shows, if the lock was renewed. If it has no label, what an
    /// earlier lock left behind is removed. Reports that: the node may be schedulable again.
    pub(crate) async fn update_node(&self, change: &Change) {
        let node = &change.node;
        match self.protection().update_node(change).await {
            NodeUpdate::Done => {}
            NodeUpdate::EndNotMoved(error) => self.report_end_not_moved(node, error),
            NodeUpdate::EarlierRemoved(keys) => {
                let removed = node_keys::earlier_removed(node, &keys);
                self.terminal.remark(removed);
            }
            NodeUpdate::EarlierStays(error) => self.report_left(node, false, &error.into()),
        }
    }

    fn report_end_not_moved(&self, node: &str, error: WriteError) {
        let words = node_keys::end_not_moved(node, &error.into());
        self.terminal.warn(words);
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
        let node = lease.node();
        match self.remove_held_label(node, Some(lease)).await {
            Ok(stays) => self.report_stays(node, stays),
            Err(error) => self.report_left(node, is_free, &error.into()),
        }
    }

    /// Checks by a dry run of `end` that the server accepts the end of a lock.
    ///
    /// # Errors
    /// Those of `end`. Nothing was changed.
    pub(crate) async fn may_end_lock(
        &self,
        end: &impl AsyncFn(&Maintenance) -> Result<Change, Error>,
    ) -> Result<(), Error> {
        match end(&self.locks.in_dry_run()).await {
            Ok(_) => Ok(()),
            // Only the write itself can show it.
            Err(Error::Api(error)) if error.lacks_dry_run_support() => Ok(()),
            // A dry run never takes effect.
            Err(Error::Unknown { source, .. }) => Err(Error::Api(source)),
            Err(error) => Err(error),
        }
    }

    /// Ends a lock with `end`, and first removes what it set on its Node. Before, it
    /// [checks](Self::may_end_lock) that the server accepts the end: a lock that stays must keep what it set. `ending` is that lock; `None`: there is nothing to remove.
    ///
    /// # Errors
    /// Those of `end`, and of [`remove_held_label`](Self::remove_held_label).
    pub(crate) async fn end_lock(
        &self,
        ending: Option<&NodeLease>,
        end: impl AsyncFn(&Maintenance) -> Result<Change, Error>,
    ) -> Result<Change, Error> {
        let ending = ending.filter(|lease| may_have_keys(lease) && !self.locks.is_dry_run());
        let Some(lease) = ending else {
            return end(&self.locks).await;
        };
        self.may_end_lock(&end).await?;
        let stays = self.remove_held_label(lease.node(), Some(lease)).await?;
        let change = end(&self.locks).await?;
        self.report_stays(lease.node(), stays);
        Ok(change)
    }

    /// Removes what [`set_held_label`](Self::set_held_label) wrote, before the lock `ending` is ended, and what is left of a
    /// lock that has ended. If the server refuses that, or a webhook keeps it, it stays, and the lock can be ended all the
    /// same: returns why, for [`report_stays`](Self::report_stays) once the lock has ended. A held label without a lock id
    /// stays too, and is reported at once.
    ///
    /// # Errors
    /// If the Node can't be read or written for a reason that may pass. The lock should stay: the same command can remove
    /// everything when it is run again.
    pub(crate) async fn remove_held_label(
        &self,
        node: &str,
        ending: Option<&NodeLease>,
    ) -> Result<Option<ProtectionError>, Error> {
        match self.remove_keys(node, ending).await {
            Ok(KeysRemoved::Done(keys)) if keys.cordon => {
                self.terminal.remark(node_keys::uncordoned(node));
                Ok(None)
            }
            Ok(KeysRemoved::WithoutLockId) => {
                let program = self.program;
                let (warning, hint) = node_keys::without_lock_id(node, program);
                self.terminal.warn(warning);
                self.terminal.hint(hint);
                Ok(None)
            }
            Ok(_) => Ok(None),
            Err(Error::Api(error))
                if error.is_rejection() || matches!(error, ApiError::Altered) =>
            {
                Ok(Some(Error::Api(error).into()))
            }
            Err(error) => Err(error),
        }
    }

    /// Reports what `stays` on the Node of a lock that has ended, if there is something.
    pub(crate) fn report_stays(&self, node: &str, stays: Option<ProtectionError>) {
        if let Some(error) = stays {
            self.report_left(node, true, &error);
        }
    }

    /// The same, with its result.
    ///
    /// # Errors
    /// The same, and a refusal.
    pub(crate) async fn remove_keys(
        &self,
        node: &str,
        ending: Option<&NodeLease>,
    ) -> Result<KeysRemoved, Error> {
        self.protection().unprotect(node, ending).await
    }

    /// Removes everything that locks wrote on the Node, whatever lock it belongs to, but not the cordon of a lock that stands.
    ///
    /// # Errors
    /// If the Node can't be read or written.
    pub(crate) async fn clear_keys(&self, node: &str) -> Result<NodeKeys, Error> {
        self.protection().clear(node).await
    }
}
