//! What locks ask of their Nodes: how it is set and removed, and what is said about that.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use maintenance_lease::{Change, Done, Error, HeldLease, NodeLease};
use node_keys::{Asked, Cordon, Mode, NotSet, Wanted};
use tokio::time::timeout;

use super::session::{PARALLEL, Session};
use crate::error::{Failure, KeysError, Kind};
use crate::words::keys as words;

/// A lock that asks for keys of its Node.
pub(crate) struct Protected {
    pub(crate) node: String,
    pub(crate) is_labeled: bool,
    /// The cordon that was asked for is missing, so the command fails.
    pub(crate) is_uncordoned: bool,
}

/// # Errors
/// If a cordon that was asked for is missing. It is reported already.
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

fn cordons(asked: Option<&Asked>) -> bool {
    asked.is_some_and(|asked| asked.cordon == Cordon::Set)
}

impl Session<'_> {
    /// Sets what the locks in `changes` ask of their Nodes, and removes what the locks asked for that they replaced. `asked` is
    /// what this command asks for. Reports the outcome: the locks count without it. Returns what is on the Nodes of locks that
    /// ask for something.
    pub(crate) async fn set_keys(
        &self,
        changes: &[Change],
        asked: Option<&Asked>,
    ) -> Vec<Protected> {
        let setting = changes.iter().map(|change| self.set_keys_of(change, asked));
        let set = stream::iter(setting).buffered(PARALLEL);
        set.filter_map(async |set| set).collect().await
    }

    async fn set_keys_of(&self, change: &Change, asked: Option<&Asked>) -> Option<Protected> {
        let lease = begun(change)?;
        // A lock that is reported must last long enough to work under it.
        let now = self.locks.server_time().now();
        let limit = lease.report_limit(now).unwrap_or(Duration::MAX);
        if Asked::of(lease).is_none() {
            let replaced = change.before.as_ref();
            if let Some(replaced) = replaced.filter(|_| change.done == Done::Acquired) {
                self.remove_keys(replaced, limit).await;
            }
            return None;
        }
        let mode = match asked {
            Some(_) => Mode::Set,
            None => Mode::Update,
        };
        let set = match timeout(limit, node_keys::set(&self.locks, lease, mode)).await {
            Ok(set) => set.map_err(KeysError::from),
            Err(_) => Err(KeysError::TooSlow(limit)),
        };
        let is_labeled = set.is_ok();
        match set {
            Ok(_) if asked.is_none() && change.done == Done::Renewed => {}
            Ok(wanted) => self.report_set(lease, asked, &wanted),
            Err(error) if asked.is_none() && change.done == Done::Renewed => {
                self.report_end_not_moved(lease.node(), &error);
            }
            Err(error) => self.report_not_set(lease, cordons(asked), &error),
        }
        Some(Protected {
            node: lease.node().to_owned(),
            is_labeled,
            is_uncordoned: cordons(asked) && !is_labeled,
        })
    }

    /// Sets what the lock in `lease` asks of its Node, which is what was `asked`. Reports the outcome, and returns whether the Node
    /// is labeled.
    pub(crate) async fn label(&self, lease: &NodeLease, asked: &Asked) -> bool {
        let set = node_keys::set(&self.locks, lease, Mode::Set).await;
        let is_labeled = set.is_ok();
        match set {
            Ok(wanted) => self.report_set(lease, Some(asked), &wanted),
            Err(error) => self.report_not_set(lease, cordons(Some(asked)), &error.into()),
        }
        is_labeled
    }

    fn report_set(&self, lease: &NodeLease, asked: Option<&Asked>, wanted: &Wanted) {
        for conflict in &wanted.conflicts {
            let conflict = words::conflict(conflict);
            self.terminal
                .warn(format!("node/{}: {conflict}", lease.node()));
        }
        if wanted.uncordons {
            self.terminal.remark(words::uncordoned(lease.node()));
        }
        if cordons(asked) || !lease.is_hold() {
            let words = words::protected(lease.node(), lease.is_hold(), wanted);
            self.terminal.remark(words);
        }
    }

    fn report_not_set(&self, lease: &NodeLease, cordons: bool, error: &KeysError) {
        let text = words::not_labeled(lease, cordons, error);
        match cordons {
            true => self.terminal.error(&text),
            false => self.terminal.warn(text),
        }
    }

    fn report_end_not_moved(&self, node: &str, error: &KeysError) {
        self.terminal.warn(words::end_not_moved(node, error));
    }

    /// Moves the end that the Nodes of the locks in `held` show, while the locks are renewed.
    pub(crate) async fn follow_ends(&self, held: &[HeldLease]) -> Infallible {
        let report =
            |node: &str, error: NotSet| self.report_end_not_moved(node, &KeysError::from(error));
        let following = held.iter();
        let following = following.map(|held| node_keys::follow_end(&self.locks, held, &report));
        join_all(following).await;
        pending().await
    }

    /// Ends a lock with `end`, and then removes what it asked of its Node.
    ///
    /// # Errors
    /// Those of `end`.
    pub(crate) async fn end_lock(
        &self,
        end: impl Future<Output = Result<Change, Error>>,
    ) -> Result<Change, Error> {
        let change = end.await?;
        let is_ended = change.done == Done::Released && !self.locks.is_dry_run();
        if let Some(ended) = change.before.as_ref().filter(|_| is_ended) {
            self.remove_keys(ended, Duration::MAX).await;
        }
        Ok(change)
    }

    /// Removes within `limit` what the lock in `ended` asked of its Node. It must have ended. Reports the outcome.
    pub(crate) async fn remove_keys(&self, ended: &NodeLease, limit: Duration) {
        if Asked::of(ended).is_none() {
            return;
        }
        let node = ended.node();
        let error = match timeout(limit, node_keys::remove(&self.locks, ended)).await {
            Ok(Ok(true)) => return self.terminal.remark(words::uncordoned(node)),
            Ok(Ok(false)) => return,
            Ok(Err(error)) => KeysError::from(error),
            Err(_) => KeysError::TooSlow(limit),
        };
        self.terminal.warn(words::keys_stay(node, &error));
        self.terminal
            .hint(words::to_remove_left(&error, self.program));
    }
}
