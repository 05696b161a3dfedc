//! Leader election, on the same Leases and by the same rules as client-go's.

use std::time::Duration;

use crate::cluster::patch::Extras;
use crate::cluster::reads::Seen;
use crate::env::nonce;
use crate::keeper::{HeldLease, Keep};
use crate::maintenance::Maintenance;
use crate::maintenance::verbs::Plan;
use crate::notes::ELECTION;
use crate::options::{InvalidOption, check_duration};
use crate::outcome::{Change, Error};
use crate::protocol::{Candidacy, Names, Verb, Version};
use crate::waiting::{Goal, Progress};

/// The length of a leader's lease where none is given: 15 s, as Kubernetes' own components have it.
pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(15);

/// One leader among processes that agree on a Lease: first come, first served; the others stand by
/// until the leader lets go, or does not renew in time.
///
/// Processes that elect with client-go, as Kubernetes' own components do, take part in the same
/// election. Their clocks may show any time, so that the times in a Lease prove nothing: a lease is
/// taken only after its record was seen unchanged for as long as it says, by one's own clock. So a
/// leader that crashed is followed a whole duration after the next one first looked.
///
/// The identity must name one process, such as the pod's name and something random: what an earlier
/// process of the same identity left behind is waited out like any other's.
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
    /// The election on the Lease `lease`, for [`DEFAULT_LEASE_DURATION`] at a time.
    ///
    /// # Errors
    /// Where `maintenance` locks nodes: they are not held by leaders, but by other rules.
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

    /// For how long at a time it leads, unless it renews: whole seconds from 1 s to 1 h. As long as
    /// the others wait for a leader that crashed.
    ///
    /// Use the same for all candidates. One with client-go v0.26 or older waits for its own duration
    /// since it last saw a renewal, whatever the Lease says: if that is shorter, it takes the lead of a
    /// leader that still believes that it leads.
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

    /// Stands by until this process leads.
    ///
    /// `progress` is told whenever another leads, not of its renewals. Between changes nothing is
    /// sent, but for the one watch.
    ///
    /// # Usage
    /// See [`LeaderElection`].
    ///
    /// # Errors
    /// As [`Maintenance::acquire_when_free`], where the namespace does not exist, and
    /// [`Error::Refused`] where coordinated leader election owns the Lease, or another application.
    ///
    /// # Caveats
    /// It waits for as long as it takes. Dropping this future ends the candidacy; it may leave a
    /// write under way, which may still land: that lease runs out by itself.
    pub async fn campaign(
        &self,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Change, Error> {
        check_duration(self.duration)?;
        self.maintenance
            .contend(&self.lease, Goal::Elect(self), None, progress)
            .await
    }

    /// Stands by until this process leads, and goes on leading: renews it from then on, in a task of
    /// its own.
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
    /// As [`campaign`](Self::campaign), and, before anything is sent, where the duration leaves no
    /// time for a renewal before the work has to stop.
    ///
    /// # Caveats
    /// As there, also of dropping this future. Once it leads, work under [`HeldLease::guard`], which
    /// ends it when the lead is lost.
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

    /// What becoming the leader does, of a holder only on the version `unchanged`.
    pub(crate) fn plan(&self, unchanged: Option<Version>) -> Result<Plan, InvalidOption> {
        let mut names = Names::default();
        let verb = Verb::Elect(Candidacy {
            duration: check_duration(self.duration)?,
            nonce: names.id(&nonce(&*self.maintenance.api.env)),
            unchanged,
        });
        let extras = Extras {
            purpose: Some(ELECTION.to_owned()),
            ..Extras::default()
        };
        Ok(Plan::new(verb, names, None, extras))
    }

    /// Whether somebody leads who would have to be waited for.
    pub(crate) fn check(&self, seen: &Seen) -> Result<(), Error> {
        let mut plan = self.plan(None)?;
        let caller = self.maintenance.caller(&mut plan.names);
        let api = &self.maintenance.api;
        api.check(&seen.node, plan.verb, caller, seen, &mut plan.names)
    }
}
