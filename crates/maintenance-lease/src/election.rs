//! Leader election, on the same Leases and by the same rules as in client-go.

use std::time::Duration;

use crate::keeper::{HeldLease, Keep};
use crate::maintenance::Maintenance;
use crate::options::{InvalidOption, check_duration};
use crate::outcome::{Change, Error};
use crate::waiting::{Goal, Progress};

/// The default length of a leader's lease: 15 s, the same as for Kubernetes' own components.
pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(15);

/// Elects one leader among the processes that agree on a Lease. The first to acquire it leads; the others
/// wait until the leader releases it or does not renew it in time.
///
/// Processes that use client-go, such as Kubernetes' own components, can take part in the same election.
/// Their clocks may be wrong, so the times in a Lease prove nothing. A lease is taken only if its record
/// stayed unchanged for its whole duration, by the contender's own clock. So after a leader crashes, a
/// new leader needs a whole duration, counted from when it first saw the record.
///
/// The identity must name one process, such as the pod's name plus something random. A lease that an
/// earlier process of the same identity left behind has to expire like any other.
///
/// # Usage
/// ```
/// use maintenance_lease::{LeaderElection, Maintenance, Release, Repository};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = sandbox::Sandbox::new();
/// let locks = Maintenance::builder(sandbox.client(), "scheduler-0_k3v9x")
///     .repository(Repository::new("default"))
///     .build()?;
/// let election = LeaderElection::new(locks.clone(), "scheduler")?;
/// let change = election.campaign(|_| ()).await?;
/// // It leads, for 15 s from when it was sent.
/// assert_eq!(change.lease.as_ref().and_then(|lease| lease.holder()), Some("scheduler-0_k3v9x"));
///
/// // Once its work is over, another may follow at once.
/// let lock_id = change.lock_id().expect("it leads");
/// locks.release("scheduler", &Release::new().lock_id(lock_id)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaderElection {
    maintenance: Maintenance,
    lease: String,
    duration: Duration,
}

impl LeaderElection {
    /// The election on the Lease `lease`, with the duration [`DEFAULT_LEASE_DURATION`].
    ///
    /// # Errors
    /// If `maintenance` locks nodes, because node locks follow other rules than leader election.
    pub fn new(maintenance: Maintenance, lease: impl Into<String>) -> Result<Self, InvalidOption> {
        if maintenance.repository().locks_nodes() {
            return Err(InvalidOption::ElectionOnANode);
        }
        Ok(Self {
            maintenance,
            lease: lease.into(),
            duration: DEFAULT_LEASE_DURATION,
        })
    }

    /// The duration of the leader's lease without a renewal: whole seconds from 1 s to 1 h. The others
    /// wait this long for a leader that crashed.
    ///
    /// Use the same duration for all candidates. A candidate with client-go v0.26 or older ignores the
    /// duration in the Lease and uses its own, counted from the last renewal that it saw. If its own is
    /// shorter, it takes over from a leader that still believes that it leads.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// The name of the Lease.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// Waits until this process leads.
    ///
    /// `progress` is called whenever the leader changes, but not for renewals. Between changes the only
    /// request is one watch.
    ///
    /// # Usage
    /// See [`LeaderElection`].
    ///
    /// # Errors
    /// As [`Maintenance::acquire_when_free`], if the namespace does not exist, and [`Error::Refused`] if
    /// the Lease belongs to coordinated leader election or to another application.
    ///
    /// # Caveats
    /// This waits without a limit. Dropping this future ends the candidacy. A write under way may still
    /// take effect; that lease then expires by itself.
    pub async fn campaign(
        &self,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        check_duration(self.duration)?;
        self.maintenance
            .contend(
                self.lease.as_str().into(),
                Goal::Elect(self.duration),
                progress,
            )
            .await
    }

    /// Waits until this process leads, then renews the lease in a task of its own.
    ///
    /// # Usage
    /// ```
    /// use std::convert::Infallible;
    ///
    /// use maintenance_lease::{Guarded, Keep, LeaderElection, Maintenance, Repository};
    ///
    /// # async fn schedule() -> Result<(), Infallible> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # let locks = Maintenance::builder(sandbox.client(), "scheduler-0_k3v9x")
    /// #     .repository(Repository::new("default"))
    /// #     .build()?;
    /// let election = LeaderElection::new(locks, "scheduler")?;
    /// let leads = election.lead(&Keep::new(), |_| ()).await?;
    /// match leads.guard(schedule()).await {
    ///     Guarded::Completed(()) => println!("done"),
    ///     Guarded::Failed(never) => match never {},
    ///     Guarded::Lost(lost) => println!("another leads: {lost}"),
    /// }
    /// // Its work is over: another follows at once.
    /// leads.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`campaign`](Self::campaign). Also, before any request is sent, if the duration leaves no time
    /// for a renewal before the work has to stop.
    ///
    /// # Caveats
    /// As for [`campaign`](Self::campaign), including what happens if this future is dropped. Once it
    /// leads, run the work under [`HeldLease::guard`], which stops it if the lead is lost.
    pub async fn lead(
        &self,
        keep: &Keep,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<HeldLease, Error> {
        self.maintenance
            .terms(keep, check_duration(self.duration)?)?;
        let change = self.campaign(progress).await?;
        self.maintenance.keep(&change, keep).await
    }
}
