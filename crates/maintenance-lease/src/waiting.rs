//! Waiting for a node's lock: one watch, one timer, and one write for each chance to acquire it.

mod contender;
mod progress;
mod spread;

pub(crate) use self::contender::{Contender, OLDEST_NODE};
pub(crate) use self::progress::Goal;
pub use self::progress::{Blocked, Progress};
use crate::maintenance::Maintenance;
use crate::options::{Acquire, Hold};
use crate::outcome::{Change, Error};
use crate::protocol::Clocks;
use crate::target::Target;

impl Maintenance {
    /// Acquires a node as soon as its holder releases it or its lease expires.
    ///
    /// `progress` is called whenever the obstacle changes. Between changes the only request is one watch. If the node was read
    /// already, the first attempt writes on that version; that read determines the Node that the lock is for, so it should
    /// not be old.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance, Progress, Release};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// # let bob = Maintenance::new(sandbox.client(), "bob@laptop")?;
    /// # bob.try_acquire("worker-1", &Acquire::new()).await?;
    /// # let release = async { bob.release("worker-1", &Release::new()).await };
    /// let options = Acquire::new();
    /// let acquired = maintenance.acquire_when_free("worker-1", &options, |progress| {
    ///     if let Progress::Blocked(blocked) = progress {
    ///         println!("waiting: {}", blocked.refused);
    ///     }
    /// });
    /// # let (acquired, released) = futures::future::join(acquired, release).await;
    /// # released?;
    /// # let acquired = async { acquired };
    /// let change = acquired.await?;
    /// assert_eq!(change.lease.as_ref().and_then(|lease| lease.holder()), Some("reboot-controller"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire), except for a lock that can become free by expiring or by a
    /// release. If the server does not answer, the first request fails; later ones are retried.
    ///
    /// # Caveats
    /// This waits without a limit. Dropping this future ends the wait. It may leave a write under way
    /// ([`has_open_write`](Self::has_open_write)), which may still take effect; the lease then expires by
    /// itself. There is no queue: the first waiter to acquire the lock wins. A waiter that lost a race delays
    /// its next attempts by a random time of up to a second, so that many waiters send few requests.
    pub async fn acquire_when_free(
        &self,
        node: impl Into<Target>,
        options: &Acquire,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        self.contend(node.into(), Goal::Acquire(options), progress)
            .await
    }

    /// Holds a node as an administrator, as soon as its holder releases it or its lease expires.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Hold, Maintenance, Progress};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let hold = Hold::new("its fan is loud");
    /// let told = |progress: Progress<'_>| println!("{progress:?}");
    /// let change = maintenance.hold_when_free("worker-1", &hold, told).await?;
    /// // It stays until it is ended, whatever becomes of this process.
    /// let lease = change.lease.expect("it was just made");
    /// assert_eq!(lease.holder(), Some("kubeadm:alice@bastion"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`hold`](Self::hold), except for a lock that can become free by expiring or by a release.
    ///
    /// # Caveats
    /// As [`acquire_when_free`](Self::acquire_when_free). Dropping this future may leave a write under
    /// way, which may still take effect; that hold stays until somebody ends it.
    pub async fn hold_when_free(
        &self,
        node: impl Into<Target>,
        options: &Hold,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        self.contend(node.into(), Goal::Hold(options), progress)
            .await
    }

    pub(crate) async fn contend(
        &self,
        target: Target,
        goal: Goal<'_>,
        mut progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        let mut contest = Contender::new(self, &target.node, goal);
        let begun = contest.begin_read();
        let seen = match target.seen {
            Some(seen) => seen,
            None => self.read(&target.node, true).await?,
        };
        contest.read(seen, begun)?;
        loop {
            contest.until_free(&mut progress).await?;
            if let Some(change) = contest.attempt().await? {
                return Ok(change);
            }
        }
    }

    /// What the clocks show, the boot clock read first.
    pub(crate) fn clocks(&self) -> Clocks {
        let boot = self.api.env.boot();
        Clocks {
            boot,
            server: self.api.time.now(),
        }
    }
}
