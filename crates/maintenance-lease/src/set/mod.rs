//! Several locks together: all or none, or those that can be acquired.
//!
//! A try begins with a look at all of them, and writes nothing unless all may be acquired. If one is refused all the same,
//! what was acquired is released. Nothing is held while it waits, so sets that overlap can't wait for each other.

mod driver;
mod give_back;
mod held_locks;
mod look;
mod options;
mod stop;
mod wait;

use std::pin::pin;

use self::driver::Driver;
pub use self::options::{SetError, SetOptions, SetOutcome, SetProgress};
use crate::bugs::{self, Bug};
use crate::cluster::change::DryRun;
use crate::keeper::{Lost, LostBy};
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::options::Release;
use crate::outcome::{Change, Done, Error, Refused};
use crate::protocol::{LockId, Refusal};
use crate::target::Target;

impl Maintenance {
    /// Locks several nodes and reports what became of each.
    ///
    /// All are locked or none, unless [partial](SetOptions::partial): if one is refused or lost, the time limit passes or
    /// `interrupt` completes, this releases what it acquired, and only that. A lock that became a hold stays on hold.
    /// Nothing is written unless one list shows that all may be acquired.
    ///
    /// Expired locks are acquired after the free ones, and the caller's own locks after these: until then they keep their
    /// reasons, tickets, purposes and expected ends.
    ///
    /// A call that [waits](SetOptions::wait) acquires the locks one after another, in name order. If one is refused, it
    /// releases what it acquired, waits until the lock is free and tries again, after a growing random pause. Of the calls
    /// that try at the same time, the one that has the last node by name for which they compete is not refused, so
    /// somebody always gets in.
    ///
    /// During a try, locks with little time left are renewed. After an interrupt, requests under way and releases have two
    /// seconds for each answer.
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
        Driver::new(self, targets, options, interrupt, progress)
            .run()
            .await
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
        self.end(lease, lock_id).await
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
            self.end(&lease, lock_id).await?;
            open_writes.reported(node, &lease);
        }
        Ok(())
    }

    /// Ends the acquisition of `lock_id`, as seen in `lease`, if it still stands.
    async fn end(&self, lease: &NodeLease, lock_id: LockId) -> Result<(), Error> {
        let released = match lease.admin {
            true => self.unhold(lease.clone(), Some(lease)).await,
            false => {
                let options = Release::new().lock_id(lock_id);
                self.release(lease.clone(), &options).await
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
