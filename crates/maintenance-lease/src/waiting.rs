//! Waiting for a node's lock: one watch, one timer, and one write for each chance to acquire it.

mod contender;
mod progress;
mod spread;

pub(crate) use self::contender::{Contender, OLDEST_NODE};
pub(crate) use self::progress::Goal;
pub use self::progress::{Blocked, Progress};
use crate::cluster::reads::NodeAndLease;
use crate::maintenance::Maintenance;
use crate::options::{Acquire, Hold};
use crate::outcome::{Change, Error};
use crate::protocol::Clocks;

impl Maintenance {
    /// Acquires a node as soon as its holder releases it or its lease expires.
    ///
    /// `progress` is called whenever the obstacle changes. Between changes the only request is one watch.
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
        node: &str,
        options: &Acquire,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        self.acquire_when_free_seen(node, options, None, progress)
            .await
    }

    /// Like [`acquire_when_free`](Self::acquire_when_free), but uses a Lease that was read already. The
    /// first attempt writes on that version, and a watch from that version reports later changes.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Done, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let seen = maintenance.read("worker-1", true).await?;
    /// if seen.row.row().is_some_and(|node| node.is_cordoned()) {
    ///     println!("somebody did not finish, perhaps");
    /// }
    /// let options = Acquire::new();
    /// let change = maintenance
    ///     .acquire_when_free_seen("worker-1", &options, Some(seen), |_| ())
    ///     .await?;
    /// assert_eq!(change.done, Done::Acquired);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`acquire_when_free`](Self::acquire_when_free).
    ///
    /// # Caveats
    /// As [`acquire_when_free`](Self::acquire_when_free). The Lease should have been read just before,
    /// because that read determines the Node that the lock is for.
    pub async fn acquire_when_free_seen(
        &self,
        node: &str,
        options: &Acquire,
        seen: Option<NodeAndLease>,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        self.contend(node, Goal::Acquire(options), seen, progress)
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
        node: &str,
        options: &Hold,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        self.hold_when_free_seen(node, options, None, progress)
            .await
    }

    /// Like [`hold_when_free`](Self::hold_when_free), but uses a Lease that was read already.
    ///
    /// # Usage
    /// As [`acquire_when_free_seen`](Self::acquire_when_free_seen).
    ///
    /// # Errors
    /// As [`hold_when_free`](Self::hold_when_free).
    ///
    /// # Caveats
    /// As [`hold_when_free`](Self::hold_when_free) and
    /// [`acquire_when_free_seen`](Self::acquire_when_free_seen).
    pub async fn hold_when_free_seen(
        &self,
        node: &str,
        options: &Hold,
        seen: Option<NodeAndLease>,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        self.contend(node, Goal::Hold(options), seen, progress)
            .await
    }

    pub(crate) async fn contend(
        &self,
        node: &str,
        goal: Goal<'_>,
        seen: Option<NodeAndLease>,
        mut progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        let mut contest = Contender::new(self, node, goal);
        let begun = contest.begin_read();
        let seen = match seen {
            Some(seen) => seen,
            None => self.read(node, true).await?,
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
