//! The maintenance locks of the nodes, held while something is deleted from them.

use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::{
    Acquire, Error, HeldLease, Keep, Lost, LostBy, NodeLease, SetError, SetOptions,
};
use pod_safety::Known;
use pod_safety::facts::Lock;

use super::carry_out::Run;
use super::lock_check::LostLock;
use super::read::{Findings, is_forbidden};
use crate::error::{Failure, Kind, LockAfter};
use crate::run::interruption::Interruption;
use crate::run::side_effects::SideEffects;
use crate::text::escape;

/// The lease duration. After a crash, others are blocked for this long.
const DURATION: Duration = Duration::from_secs(60);

/// The locks that protect the deletion.
#[derive(Default)]
pub(super) struct Locks {
    /// Those that this command acquired.
    pub(super) held: Vec<HeldLease>,
    /// Those that the caller held already.
    pub(super) own: Vec<NodeLease>,
    /// The nodes whose lost locks were reported.
    pub(super) reported_lost: Vec<String>,
    /// Side effects of the acquisitions.
    pub(super) side_effects: SideEffects,
}

impl Run<'_> {
    /// Acquires the free locks of the nodes in `findings`, adds them to `taken`, and reports that. Skips locks
    /// that the caller already holds, and those that the caller overrides or may not acquire: the report
    /// showed these.
    ///
    /// # Errors
    /// If somebody else acquired one since the report, or if one of the caller's own has expired, which is
    /// reported here. If the server refuses an acquisition that the report did not warn about, and
    /// `lease-unknown` was not accepted. If it was interrupted: then it waits for answers that come soon,
    /// and releases what was acquired.
    pub(super) async fn take(
        &self,
        findings: &Findings,
        taken: &mut Locks,
        ended: &Interruption,
    ) -> Result<(), Failure> {
        let result = self.take_free(findings, taken, ended).await;
        let terminal = self.session.terminal;
        taken.side_effects.print(terminal, "");
        let nodes = taken.held.iter();
        let nodes: Vec<String> = nodes.map(|held| format!("node/{}", held.node())).collect();
        if result.is_ok() && !nodes.is_empty() {
            let caller = escape(self.session.locks.identity());
            terminal.remark(format!(
                "{} locked by {caller} during the deletion",
                nodes.join(", ")
            ));
        }
        result
    }

    async fn take_free(
        &self,
        findings: &Findings,
        taken: &mut Locks,
        ended: &Interruption,
    ) -> Result<(), Failure> {
        let insists = self.args.accepts_refusal("lease");
        let mut free = Vec::new();
        for (node, lock) in &findings.locks {
            if matches!(lock, Known::Yes(Lock::Own { .. })) && !insists {
                let reading = async { Ok(self.session.locks.get(node).await?) };
                match ended.or(reading).await? {
                    Some(lease) if self.session.locks.is_own(&lease) => taken.own.push(lease),
                    _ => {
                        self.own_ended(node, 0);
                        return Err(Failure::Reported(Kind::Unsafe));
                    }
                }
            }
            let is_free = matches!(lock, Known::Yes(Lock::Free | Lock::Expired { .. }));
            if is_free && findings.nodes.contains(node) {
                free.push(node.clone());
            }
        }
        let acquire = Acquire::new().duration(DURATION).reason(format!(
            "force-delete {}",
            self.targets.typed(self.namespace())
        ));
        let options = SetOptions::acquire(acquire).partial();
        let locks = self.process;
        let outcome = locks.lock_all(free, &options, ended.came(), |_| ()).await;
        let mut result = Ok(());
        for change in outcome.held.into_values() {
            taken.side_effects.add(&change);
            match locks.keep(&change, &Keep::new()).await {
                Ok(held) => taken.held.push(held),
                Err(error) => {
                    // What can't be released expires by itself.
                    let given = locks.release_acquired(&change).await;
                    result = Err(given.err().unwrap_or(error).into());
                }
            }
        }
        for (node, error) in outcome.failed {
            let settled = self.unlocked(&node, error);
            result = result.and(settled);
        }
        if outcome.interrupted {
            result = result.and(Err(Failure::Interrupted));
        }
        result
    }

    /// Why `node` can't be locked, if the deletion must not go on without the lock.
    fn unlocked(&self, node: &str, error: SetError) -> Result<(), Failure> {
        match error {
            SetError::Lock(Error::NodeNotFound(_)) => Ok(()),
            SetError::Lock(error) if is_forbidden(&error) && self.args.accepts("lease-unknown") => {
                let error = escape(&error.to_string());
                self.session.terminal.warn(format!(
                    "node/{node} is not locked during the deletion: {error}"
                ));
                Ok(())
            }
            SetError::Lock(error) => Err(error.into()),
            SetError::Interrupted { may_land: false } => Err(Failure::Interrupted),
            SetError::TooSlow(_) => Err(Failure::TooSlow {
                node: node.to_owned(),
            }),
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

    /// Releases what was acquired, in parallel; after Ctrl-C within a short time limit. A Lease that was
    /// deleted with its Node needs no release, and a lost lock is not ours any more. True if such a loss
    /// was not reported before.
    pub(super) async fn give_back(&self, locks: Locks, ended: &Interruption) -> bool {
        let Locks {
            held,
            reported_lost,
            ..
        } = locks;
        let giving = held.into_iter().map(|held| async {
            let node = held.node().to_owned();
            let before = held.held_state().lease;
            let released = ended.or_soon(async { Ok(held.release().await?) }).await;
            let failure = match released {
                Ok(_) => return false,
                Err(Failure::Lock(Error::Lost(lost))) => {
                    let lost = Lost::clone(&lost);
                    return self.report_late_loss(&LostLock { lost, before }, &reported_lost);
                }
                Err(Failure::Lock(Error::Refused(refused))) => {
                    let lost = Lost::from(*refused);
                    return self.report_late_loss(&LostLock { lost, before }, &reported_lost);
                }
                Err(failure) => failure,
            };
            let is_open = failure.lock_after() == LockAfter::Unknown
                || matches!(failure, Failure::Interrupted);
            let what = if is_open {
                format!("unknown whether the lock on node/{node} was released")
            } else {
                format!("could not release the lock on node/{node}")
            };
            self.session.terminal.warn(format!(
                "{what}: {}; it expires within {}s",
                escape(&failure.to_string()),
                DURATION.as_secs()
            ));
            false
        });
        join_all(giving).await.contains(&true)
    }

    /// Reports a loss that is noticed only now, unless it was reported before or the Lease was deleted with
    /// its Node.
    fn report_late_loss(&self, loss: &LostLock, reported: &[String]) -> bool {
        let is_news = loss.lost.by != LostBy::Deletion && !reported.contains(&loss.lost.node);
        if is_news {
            self.report_loss(loss);
        }
        is_news
    }
}

impl Locks {
    /// Drops the locks without a release: the Leases are deleted with the Nodes, or nothing must be
    /// released.
    pub(super) fn leave(self) {
        self.held.into_iter().for_each(HeldLease::leave);
    }

    /// A node whose lock the caller held and does not hold any more in `findings`.
    pub(super) fn ended<'a>(&'a self, findings: &Findings) -> Option<&'a str> {
        let mut own = self.own.iter().map(NodeLease::node);
        own.find(|&node| {
            let lock = findings.locks.get(node);
            matches!(lock, Some(Known::Yes(Lock::Free | Lock::Expired { .. })))
        })
    }
}
