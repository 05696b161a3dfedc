//! Several locks together: all or none, or those that can be acquired.
//!
//! [`order`] decides what to acquire and release next; [`actions`] carries it out.

mod actions;
mod held_locks;
mod held_set;
mod options;
mod order;
mod parallel;
mod wait;

use std::pin::pin;

use self::actions::Driver;
pub use self::held_set::HeldSet;
pub use self::options::{SetError, SetOptions, SetOutcome, SetProgress, Target};
use self::order::{Action, Order};
use self::parallel::Interrupt;
use crate::bugs::{self, Bug};
use crate::cluster::change::DryRun;
use crate::cluster::reads::NodeAndLease;
use crate::keeper::{Lost, LostBy};
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::options::Release;
use crate::outcome::{Change, Done, Error, Refused};
use crate::protocol::{LockId, Refusal};

impl Maintenance {
    /// Locks several nodes and reports what became of each.
    ///
    /// All are locked or none, unless [partial](SetOptions::partial): if one is refused or lost, the
    /// time limit passes or `interrupt` completes, this releases what it acquired, and only that. A lock
    /// that became a hold stays on hold. If a call that waits fails, locks that the caller had before keep their reasons,
    /// tickets, purposes and expected ends, but may expire later than before. New ones are written last of all. If it fails
    /// then, [`SetOutcome::rewritten`] names the locks that may have them.
    ///
    /// Nodes are locked in name order, which prevents deadlocks between callers whose sets overlap: one
    /// of them always continues.
    ///
    /// A call that [waits](SetOptions::wait) renews its locks while it waits for another, for at most
    /// one duration. After that, or at once behind a hold, it releases them, waits until that node is
    /// free and starts again. Every lock is checked at the end.
    ///
    /// After an interrupt, requests under way and releases have two seconds for each answer.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Acquire, Maintenance, SetOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # sandbox.add_node("worker-2");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// let options = SetOptions::acquire(Acquire::new().reason("new kernel"))
    ///     .wait(Some(Duration::from_secs(60)));
    /// let shutdown = std::future::pending(); // such as tokio::signal::ctrl_c()
    /// let outcome = maintenance
    ///     .lock_all(["worker-1", "worker-2"], &options, shutdown, |set| {
    ///         println!("{} of {} locked", set.held, set.all);
    ///     })
    ///     .await;
    /// for (node, error) in &outcome.failed {
    ///     println!("{node}: {error}");
    /// }
    /// assert_eq!(outcome.held.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Caveats
    /// Dropping this future releases what it acquired, in a background task that tries for two
    /// seconds. A write under way may still take effect; that lease expires by itself. Nothing renews
    /// the returned locks: [`keep`](Self::keep) them.
    pub async fn lock_all<T: Into<Target>>(
        &self,
        nodes: impl IntoIterator<Item = T>,
        options: &SetOptions,
        interrupt: impl Future<Output = ()>,
        progress: impl FnMut(SetProgress<'_>) + Send,
    ) -> SetOutcome {
        let targets = nodes.into_iter().map(Into::into).collect();
        let interrupt = pin!(interrupt);
        let interrupt = Interrupt::new(interrupt, self.api.env.clone());
        let kept = options.keeping_details();
        let mut driver = Driver::new(self, targets, options, &kept, interrupt, progress);
        let mut order = Order::new(driver.manner, driver.targets.len());
        let mut event = driver.check_first();
        let is_done = loop {
            event = match order.step(event) {
                Action::Acquire(from, to) => driver.acquire(from, to).await,
                Action::Await(at) => driver.wait_for(at, true).await,
                Action::Watch(at) => driver.wait_for(at, false).await,
                Action::Release(from) => driver.release(from).await,
                Action::Check => {
                    // A partial set has failures. The check comes last, because this may take long.
                    driver.release_unanswered().await;
                    driver.check().await
                }
                Action::Done => break true,
                Action::Failed => break false,
            };
        };
        if !is_done {
            driver.release_unanswered().await;
        }
        driver.outcome(is_done)
    }

    /// Releases what `change` acquired, if that acquisition still stands. It is left alone if somebody had the lock
    /// before the change, or if it belongs to somebody else now.
    ///
    /// # Errors
    /// As [`release`](Self::release), except that a lock of somebody else is no error.
    ///
    /// # Caveats
    /// As there.
    pub async fn release_acquired(&self, change: &Change) -> Result<(), Error> {
        let (Some(lease), Some(lock_id)) = (&change.lease, change.lock_id()) else {
            return Ok(());
        };
        if !self.is_new(change) {
            return Ok(());
        }
        self.end(&change.node, lease, lock_id).await
    }

    /// Releases what a write acquired on the node without its caller knowing, if it has taken effect. Writes before `since`
    /// were those of other calls.
    async fn release_unanswered(&self, node: &str, since: u64) -> Result<(), Error> {
        let open_writes = &self.api.open_writes;
        let lease = self.get(node).await?;
        open_writes.observed(node, lease.as_ref());
        let Some(lease) = lease.filter(|lease| self.is_own(lease)) else {
            return Ok(());
        };
        if let Some(lock_id) = lease
            .lock_id()
            .filter(|_| open_writes.acquired(node, &lease, since))
        {
            self.end(node, &lease, lock_id).await?;
            open_writes.reported(node, &lease);
        }
        Ok(())
    }

    /// Ends the acquisition of `lock_id`, as seen in `lease`, if it still stands.
    async fn end(&self, node: &str, lease: &NodeLease, lock_id: LockId) -> Result<(), Error> {
        let seen = Some(NodeAndLease::without_row(node, Some(lease.clone())));
        let released = match lease.admin {
            true => self.unhold_seen(node, Some(lease), seen).await,
            false => {
                let options = Release::new().lock_id(lock_id);
                self.release_seen(node, &options, seen).await
            }
        };
        match released {
            Err(Error::Refused(refused)) if is_gone(refused.refusal) => Ok(()),
            released => released.map(drop),
        }
    }

    /// Whether `change` locked a node that nobody had locked before. [`release_acquired`](Self::release_acquired) releases
    /// only such a lock.
    #[must_use]
    pub fn is_new(&self, change: &Change) -> bool {
        if bugs::active(Bug::EarlierLockReleased) {
            return matches!(change.done, Done::Acquired | Done::Renewed);
        }
        let was_held = change.state_before.is_locked();
        change.done == Done::Acquired && self.dry_run == DryRun::None && !was_held
    }
}

/// Whether the acquisition no longer stands.
fn is_gone(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::ChangedHands | Refusal::NotHolder | Refusal::OwnHold | Refusal::NotAHold
    )
}

/// The refusal of a lock that was held before is its loss.
impl From<Refused> for Lost {
    fn from(refused: Refused) -> Self {
        let holder = refused.lease.as_ref().map(NodeLease::holder);
        Self {
            subject: refused.subject,
            by: match holder {
                None => LostBy::Deletion,
                Some(None) => LostBy::Release,
                Some(Some(holder)) => LostBy::TakeOver(holder.to_owned()),
            },
            node: refused.node,
            lease: refused.lease,
            problem: None,
        }
    }
}
