//! The maintenance locks of the nodes, acquired for the deletion and then released. Nobody renews them:
//! each request deletes only the object that was checked, and is sent before the locks end.

use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::BootInstant;
use maintenance_lease::{Acquire, Change, Error, SetError, SetOptions};
use pod_safety::Known;
use pod_safety::checks::{LEASE, UNREAD};
use pod_safety::facts::{LockNeed, lasts_for_a_request};

use super::context::Run;
use super::progress::Progress;
use super::read::Findings;
use crate::error::{Failure, Kind, LockAfter, is_refused_by_server};
use crate::run::interruption::Interruption;
use crate::run::side_effects::SideEffects;
use crate::words::force_deletion as words;

/// The lease duration. After a crash, others are blocked for this long.
const DURATION: Duration = Duration::from_secs(300);

/// The locks that protect the deletion.
#[derive(Default)]
pub(super) struct Locks {
    /// Those that this command acquired.
    acquired: Vec<Change>,
    /// The nodes that it locked, or that the caller had locked before.
    nodes: Vec<String>,
    /// When the first of the locks ends.
    end: Option<BootInstant>,
}

impl Run<'_> {
    /// Acquires the free locks of the nodes in `findings`, adds them to `locks`, and reports that. Skips
    /// those that the caller already holds, overrides, or may not acquire: the report showed these.
    ///
    /// # Errors
    /// If somebody else acquired one since the report, or if one of the caller's own has expired, which is
    /// reported here. If the server refuses an acquisition that the report did not warn about, and that was
    /// not accepted. If it was interrupted: then it waits for answers that come soon.
    pub(super) async fn take(
        &self,
        findings: &Findings,
        locks: &mut Locks,
        progress: &mut Progress,
        ended: &Interruption,
    ) -> Result<(), Failure> {
        let terminal = self.session.terminal;
        let mut free = Vec::new();
        let is_overridden = self.args.overrides(LEASE);
        for (node, lock) in &findings.locks {
            match LockNeed::of(lock, findings.nodes.contains(node), is_overridden) {
                LockNeed::Keep { until } => {
                    let reading = async { Ok(self.session.locks.get(node).await?) };
                    let lease = ended.or(reading).await?;
                    if !lease.is_some_and(|lease| self.session.locks.is_own(&lease)) {
                        progress.stop(None, self.own_ended(node, 0));
                        return Err(Failure::Reported(Kind::Unsafe));
                    }
                    let left = until.map(|until| until - self.reader.now().latest);
                    let end = left.map(|left| Machine.boot().plus(left));
                    locks.add(node, end);
                }
                LockNeed::Acquire => free.push(node.clone()),
                LockNeed::Nothing => {}
            }
        }
        let acquire = Acquire::new().duration(DURATION).reason(format!(
            "force-delete {}",
            self.targets.typed(self.namespace())
        ));
        let options = SetOptions::acquire(acquire).partial();
        let locking = self.process.lock_all(free, &options, ended.came(), |_| ());
        let outcome = locking.await;
        let mut side_effects = SideEffects::default();
        for change in outcome.held.into_values() {
            side_effects.add(&change);
            locks.add(&change.node, change.deadline);
            locks.acquired.push(change);
        }
        side_effects.print(terminal, "");
        for (node, error) in outcome.failed {
            self.unlocked(&node, error)?;
        }
        if outcome.interrupted {
            return Err(Failure::Interrupted);
        }
        let acquired = locks.acquired.iter();
        let nodes: Vec<&str> = acquired.map(|change| &*change.node).collect();
        if !nodes.is_empty() {
            terminal.remark(words::locked(&nodes, self.session.locks.identity()));
        }
        Ok(())
    }

    /// Why `node` can't be locked, if the deletion must not go on without the lock.
    fn unlocked(&self, node: &str, error: SetError) -> Result<(), Failure> {
        match error {
            SetError::Lock(Error::NodeNotFound(_)) => Ok(()),
            SetError::Lock(error) if is_refused_by_server(&error) && self.args.accepts(UNREAD) => {
                self.session.terminal.warn(words::unlocked(node, &error));
                Ok(())
            }
            SetError::Lock(error) => Err(error.into()),
            SetError::Interrupted { may_land: false } => Err(Failure::Interrupted),
            // A release may have failed or is unknown, so the node may still be locked.
            SetError::Interrupted { .. } | SetError::NotReleased { .. } | SetError::TimedOut(_) => {
                Err(Self::locked(node))
            }
        }
    }

    /// The failure if the acquisition of `node` was sent, but its answer was not awaited.
    fn locked(node: &str) -> Failure {
        Failure::InterruptedLock {
            node: node.to_owned(),
            duration: DURATION,
        }
    }

    /// Releases what was acquired, in parallel; after Ctrl-C within a short time limit.
    pub(super) async fn release(&self, locks: &Locks, ended: &Interruption) {
        join_all(locks.acquired.iter().map(|change| async {
            let releasing = async { Ok(self.process.release_acquired(change).await?) };
            let Err(failure) = ended.with_grace(releasing).await else {
                return;
            };
            let is_open = failure.lock_after() == LockAfter::Unknown
                || matches!(failure, Failure::Interrupted);
            let why = failure.to_string();
            let warning = words::not_released(&change.node, is_open, &why, DURATION);
            self.session.terminal.warn(warning);
        }))
        .await;
    }
}

impl Locks {
    fn add(&mut self, node: &str, end: Option<BootInstant>) {
        self.nodes.push(node.to_owned());
        self.end = self.end.into_iter().chain(end).min();
    }

    /// Whether enough time is left to send a request.
    pub(super) fn last(&self) -> bool {
        lasts_for_a_request(self.end, Machine.boot())
    }

    /// A node in `findings` whose lock is no longer the caller's, and not anybody else's.
    pub(super) fn ended<'a>(&'a self, findings: &Findings) -> Option<&'a str> {
        let mut nodes = self.nodes.iter().map(String::as_str);
        nodes.find(|&node| {
            let lock = findings.locks.get(node);
            matches!(lock, Some(Known::Yes(lock)) if lock.has_ended())
        })
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Span;

    use super::*;

    #[test]
    fn nothing_is_deleted_under_a_lock_that_may_end_before_the_request() {
        let locks = |ends: &[u32]| {
            let mut locks = Locks::default();
            for &seconds in ends {
                let end = Machine.boot().plus(Span::seconds(seconds));
                locks.add("worker-1", Some(end));
            }
            locks.add("worker-2", None);
            locks.last()
        };
        assert!(locks(&[]));
        assert!(locks(&[60, 30]));
        assert!(!locks(&[60, 9]));
    }
}
