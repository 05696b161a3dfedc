//! The holder's handle on an acquisition that is being kept.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, abortable};

use super::held_state::{HeldState, Shared};
use super::lost::Lost;
use super::task::Driver;
use crate::bugs::{self, Bug};
use crate::cluster::error::ApiError;
use crate::cluster::patch::WriteDetails;
use crate::cluster::server_time::ServerTime;
use crate::env::Env;
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::maintenance::verbs::Plan;
use crate::options::{Acquire, InvalidOption, LONGEST_DURATION, check_duration};
use crate::outcome::{Change, Done, Error};
use crate::protocol::{Expiry, LONGEST_SECONDS, LockId, Names, Span, Terms, Verb};
use crate::repository::Subject;
use crate::target::Target;

/// How an acquisition is kept renewed.
#[derive(Clone, Debug)]
#[must_use]
pub struct Keep {
    pub(crate) duration: Option<Duration>,
    pub(crate) stop: Duration,
    pub(crate) missed_renewals: Option<u32>,
}

impl Default for Keep {
    fn default() -> Self {
        Self::new()
    }
}

impl Keep {
    /// The default: renews at a third of the duration; the work stops a second before the deadline.
    pub fn new() -> Self {
        Self {
            duration: None,
            stop: Duration::from_secs(1),
            missed_renewals: None,
        }
    }

    /// The duration that every renewal asks for, in whole seconds up to an hour. By default it is the one that the
    /// Lease has, but at most an hour: a lock that was entered again keeps its duration if that is longer than the
    /// caller's.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// How long before the deadline the work is asked to stop: the time that it needs to end.
    pub fn stop(mut self, stop: Duration) -> Self {
        self.stop = stop;
        self
    }

    /// How many renewals in a row may fail before the work has to stop, at least one. This replaces
    /// renewing at a third of the duration: a renewal is due every (duration − stop) / (`missed` + 1),
    /// which must be a second or more. A renewal that fails early is retried before the next one is due,
    /// and counts as one failure.
    pub fn missed_renewals(mut self, missed: u32) -> Self {
        self.missed_renewals = Some(missed);
        self
    }
}

/// An acquisition that is renewed until this value is dropped.
///
/// # Caveats
/// Dropping it ends the renewals, and the lock stays until it expires: call [`release`](Self::release)
/// when the work is over.
#[must_use]
pub struct HeldLease {
    maintenance: Maintenance,
    node: String,
    shared: Arc<Shared>,
    keeper: AbortHandle,
    fencing: Option<u64>,
    /// The lock existed already when it was entered again, so we must not release it.
    found: bool,
}

impl Maintenance {
    /// Waits for a node's lock, acquires it, and keeps it renewed.
    ///
    /// # Usage
    /// See [`HeldLease::guard`].
    ///
    /// # Errors
    /// As [`acquire_when_free`](Self::acquire_when_free). Also, before any request is sent, if the
    /// duration leaves no time for a renewal before the work has to stop.
    ///
    /// # Caveats
    /// As there: dropping this future ends the wait, and a write under way may still take effect. If the
    /// process crashes, the node stays locked until the lock expires: choose a short duration, such as a
    /// minute.
    ///
    /// To change the [`Keep::new`] settings, or to see who holds the lock while waiting, use
    /// [`acquire_when_free`](Self::acquire_when_free) and then [`keep`](Self::keep).
    pub async fn acquire(
        &self,
        node: impl Into<Target>,
        options: &Acquire,
    ) -> Result<HeldLease, Error> {
        let keep = Keep::new();
        self.terms(&keep, check_duration(options.duration)?)?;
        let change = self.acquire_when_free(node, options, |_| ()).await?;
        self.keep(&change, &keep).await
    }

    /// Keeps what was acquired: renews it from now on, in a task of its own.
    ///
    /// If the machine may have been paused since it was acquired, this waits for a read that shows that the
    /// lock still stands: no work begins in doubt.
    ///
    /// # Errors
    /// If nothing was acquired, or the duration leaves no time for a renewal before the work has
    /// to stop; [`Error::Lost`] if it was lost by now; [`ApiError::NoRuntime`] outside a tokio runtime.
    ///
    /// # Caveats
    /// Dropping this future ends the renewals: the lease expires by itself.
    pub async fn keep(&self, change: &Change, options: &Keep) -> Result<HeldLease, Error> {
        let lease = change
            .lease
            .clone()
            .filter(|_| {
                matches!(
                    change.done,
                    Done::Acquired | Done::Renewed | Done::AlreadyHeld
                )
            })
            .ok_or(InvalidOption::NothingToKeep)?;
        let expiry = match lease.is_of_election() {
            true => Expiry::OwnEyes,
            false => Expiry::ServerTime,
        };
        let terms = self.terms(options, lease.duration)?.until(expiry);
        self.api.env.runtime().map_err(ApiError::from)?;
        let driver = Driver::new(
            self,
            &change.node,
            lease,
            change.deadline,
            terms,
            change.suspected_pauses,
        )
        .ok_or(InvalidOption::NothingToKeep)?;
        let shared = driver.shared();
        let (task, keeper) = abortable(driver.run());
        self.api.env.spawn(Box::pin(async move {
            // Aborted by its handle: nobody is left to notify.
            let _ = task.await;
        }));
        let held = HeldLease {
            maintenance: self.clone(),
            node: change.node.clone(),
            fencing: change.fencing,
            found: change.done != Done::Acquired,
            shared,
            keeper,
        };
        held.checked().await.map_err(Error::Lost)?;
        Ok(held)
    }

    /// The terms on which an acquisition for `duration` seconds is kept.
    pub(crate) fn terms(&self, options: &Keep, duration: u32) -> Result<Terms, InvalidOption> {
        let duration = match options.duration {
            Some(duration) => check_duration(duration)?,
            None => duration.min(LONGEST_SECONDS),
        };
        let stop = options.stop.into();
        if let Some(missed) = options.missed_renewals {
            let shortest = Terms::shortest_tolerating(missed, stop);
            let terms = Terms::tolerating(missed, duration, stop);
            return terms.ok_or_else(|| too_short(duration, shortest));
        }
        if duration < Terms::shortest(Span::ZERO, stop) {
            let request = self.api.limit.map(Into::into).unwrap_or_default();
            return Err(too_short(duration, Terms::shortest(request, stop)));
        }
        Ok(Terms::new(duration, stop))
    }
}

fn too_short(duration: u32, shortest: u32) -> InvalidOption {
    match u64::from(shortest) > LONGEST_DURATION.as_secs() {
        true => InvalidOption::NoneLongEnough { shortest },
        false => InvalidOption::TooShort { duration, shortest },
    }
}

impl HeldLease {
    /// What the lock is for.
    #[must_use]
    pub fn subject(&self) -> Subject {
        self.maintenance.api.repository.subject()
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The lock id: identifies this acquisition.
    #[must_use]
    pub fn lock_id(&self) -> Option<LockId> {
        self.shared.held_state().lease.lock_id()
    }

    /// The fencing number: the resource version of the write that acquired the lease. A store that
    /// remembers the highest number it saw can refuse holders that have lost their lock. `None` if the
    /// lock was entered again instead of acquired: only the client that acquired it knows the number.
    ///
    /// # Caveats
    /// If the answer to the acquiring write was lost, this is the version that was read afterwards. It is
    /// higher than the real one if others wrote in between, and lower than that of any later acquisition.
    /// An etcd that was restored from a backup may count from a lower number again.
    #[must_use]
    pub fn fencing(&self) -> Option<u64> {
        self.fencing
    }

    /// Whether the lock existed already and was entered again. It is then not released at the end.
    #[must_use]
    pub fn was_found(&self) -> bool {
        self.found
    }

    /// Its current state.
    #[must_use]
    pub fn held_state(&self) -> HeldState {
        self.shared.held_state()
    }

    /// Waits until its state differs from `known`: renewed, can no longer be renewed, cut short, checked
    /// or lost.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance, Release};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let held = maintenance.acquire("worker-1", &Acquire::new()).await?;
    /// # let carol = maintenance.as_holder("carol@desk")?;
    /// # let seen = maintenance.get("worker-1").await?.expect("it is held");
    /// # carol.force_release(&seen, &Release::new()).await?;
    /// let mut state = held.held_state();
    /// while state.lost.is_none() {
    ///     if let Some(problem) = &state.problem {
    ///         println!("not renewed: {problem}");
    ///     }
    ///     state = held.changed(&state).await;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping this future ends the wait and does nothing else.
    pub async fn changed(&self, known: &HeldState) -> HeldState {
        let mut held_state = self.shared.subscribe();
        let is_changed = |now: &HeldState| {
            now.deadline != known.deadline
                || now.stop_at != known.stop_at
                || now.checking != known.checking
                || now.problem.is_some() != known.problem.is_some()
                || now.lost.is_some() != known.lost.is_some()
        };
        let change = held_state
            .wait_for(is_changed)
            .await
            .ok()
            .map(|now| now.clone());
        match change {
            Some(held_state) => held_state,
            None => std::future::pending().await,
        }
    }

    /// Completes once it is not in doubt; at once if it is not.
    ///
    /// # Errors
    /// How it was lost, if it was lost.
    pub async fn checked(&self) -> Result<(), Arc<Lost>> {
        if !bugs::active(Bug::WorkBegunInDoubt) {
            self.shared.check_clocks(self.time());
        }
        let mut held_state = self.shared.subscribe();
        let settled = held_state
            .wait_for(|now| now.lost.is_some() || !now.checking)
            .await
            .ok()
            .map(|now| now.lost.clone());
        match settled {
            Some(None) => Ok(()),
            Some(Some(lost)) => Err(lost),
            None => std::future::pending().await,
        }
    }

    /// Completes when it is lost, and returns how; at once if it is already lost.
    ///
    /// # Usage
    /// For work that can't be dropped as [`guard`](Self::guard) drops it, such as a thread or another
    /// process, and has to be asked to stop.
    /// ```
    /// # use std::time::Duration;
    /// # use maintenance_lease::{Acquire, LostBy, Maintenance, Release};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// # let options = Acquire::new().duration(Duration::from_secs(60));
    /// let held = maintenance.acquire("worker-1", &options).await?;
    /// # let carol = maintenance.as_holder("carol@desk")?;
    /// # let seen = maintenance.get("worker-1").await?.expect("it is held");
    /// # carol.force_release(&seen, &Release::new()).await?;
    /// let lost = held.expiry().await;
    /// println!("stop: {lost}");
    /// # assert_eq!(lost.by, LostBy::Release);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Caveats
    /// Work that is asked to stop needs time to end. It must have ended by [`HeldState::deadline`], and
    /// must be asked to stop at [`HeldState::stop_at`] at the latest, both by [`Env::boot`]. Dropping this
    /// future ends the wait and does nothing else.
    pub async fn expiry(&self) -> Arc<Lost> {
        let mut held_state = self.shared.subscribe();
        let lost = held_state.wait_for(|now| now.lost.is_some()).await;
        match lost.ok().and_then(|now| now.lost.clone()) {
            Some(lost) => lost,
            None => std::future::pending().await,
        }
    }

    /// Releases the lock, if it is still this acquisition. Call it when the work is over.
    ///
    /// Returns `None` if the lock existed already when it was entered again: it is then left as it is.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Error, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let held = maintenance.acquire("worker-1", &Acquire::new()).await?;
    /// // The work is over.
    /// match held.release().await {
    ///     Ok(_) => println!("given back"),
    ///     Err(Error::Lost(lost)) => println!("it was lost meanwhile: {lost}"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost: nothing is written then. [`Error::Refused`] if another acquisition
    /// has replaced it.
    ///
    /// # Caveats
    /// Dropping this future may leave the release under way. It ends the renewals in any case, so the
    /// lease expires by itself.
    pub async fn release(self) -> Result<Option<Change>, Error> {
        if !bugs::active(Bug::RevivedAfterRelease) {
            self.keeper.abort();
        }
        let HeldState { lease, lost, .. } = self.shared.held_state();
        if let Some(lost) = lost {
            return Err(Error::Lost(lost));
        }
        if self.found {
            return Ok(None);
        }
        self.release_lease(lease).await.map(Some)
    }

    /// Ends the renewals and leaves the Lease as it is: it expires by itself.
    pub fn leave(self) {
        self.keeper.abort();
    }

    async fn release_lease(&self, lease: NodeLease) -> Result<Change, Error> {
        let mut names = Names::default();
        let meant = lease.reduced(&mut names).acquisition();
        let verb = match lease.admin {
            true => Verb::Unhold { another: false },
            false => Verb::Release,
        };
        let plan = Plan::new(verb, names, meant, WriteDetails::default());
        self.maintenance.carry_out(lease.into(), plan).await
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn env(&self) -> &dyn Env {
        &*self.maintenance.api.env
    }

    pub(super) fn time(&self) -> &ServerTime {
        &self.maintenance.api.time
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}
