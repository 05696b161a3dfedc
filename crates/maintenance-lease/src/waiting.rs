//! Waiting for a node's lock: one watch, one timer, and one write for each chance to take it.

use std::future::pending;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::BoxStream;

use crate::cluster::error::ApiError;
use crate::cluster::reads::{Seen, Sight};
use crate::cluster::watch::{LeaseEvent, WatchEvent};
use crate::env::backoff;
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::maintenance::verbs::Plan;
use crate::options::{Acquire, Hold, InvalidOption};
use crate::outcome::{Change, Error, Refused};
use crate::protocol::{
    BootInstant, Clocks, Expiry, Instant, Names, Refusal, Turn, Waiter, state, takeover,
};

/// How long a waiter whose watch can't be read goes without reading the Lease.
const BLIND: Duration = Duration::from_secs(10);

/// What stands between a waiter and its lock.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The refusal that it would meet now: who holds it, since when and why.
    pub refused: Refused,
    /// When it could be free at the earliest, by the server's time, if nobody renews or releases
    /// it; `None` where no passing of time frees it.
    pub earliest: Option<Instant>,
}

impl Blocked {
    /// Whether `earlier` told of the same obstacle: the same acquisition, for the same reason, though
    /// it may have been renewed since.
    #[must_use]
    pub fn is_still(&self, earlier: &Self) -> bool {
        let (now, then) = (&self.refused, &earlier.refused);
        now.refusal == then.refusal && acquisition(now) == acquisition(then)
    }
}

/// What is waited for.
enum Goal<'a> {
    Acquire(&'a Acquire),
    Hold(&'a Hold),
}

impl Maintenance {
    /// Acquires a node, as soon as its holder lets go or its lease runs out.
    ///
    /// `blocked` is told whenever what stands in the way changes. Between changes nothing is sent,
    /// but for the one watch.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance, Release};
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
    /// let acquired = maintenance.acquire_when_free("worker-1", &options, |blocked| {
    ///     println!("waiting: {}", blocked.refused);
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
    /// As [`try_acquire`](Self::try_acquire), but for a lock that passing time or its holder can
    /// free. A server that does not answer is an error at the first request, and waited for later.
    ///
    /// # Caveats
    /// It waits for as long as it takes: drop the future to end it. That may leave a write under
    /// way ([`has_open_write`](Self::has_open_write)), which may still land. Nobody queues: of all
    /// who wait, one wins.
    pub async fn acquire_when_free(
        &self,
        node: &str,
        options: &Acquire,
        blocked: impl FnMut(&Blocked) + Send,
    ) -> Result<Change, Error> {
        self.contend(node, Goal::Acquire(options), blocked).await
    }

    /// Holds a node as an administrator, as soon as its holder lets go or its lease runs out.
    ///
    /// # Errors
    /// As [`hold`](Self::hold), but for a lock that passing time or its holder can free.
    ///
    /// # Caveats
    /// As [`acquire_when_free`](Self::acquire_when_free) has.
    pub async fn hold_when_free(
        &self,
        node: &str,
        options: &Hold,
        blocked: impl FnMut(&Blocked) + Send,
    ) -> Result<Change, Error> {
        self.contend(node, Goal::Hold(options), blocked).await
    }

    async fn contend(
        &self,
        node: &str,
        goal: Goal<'_>,
        mut blocked: impl FnMut(&Blocked) + Send,
    ) -> Result<Change, Error> {
        let seen = self.see(node, true).await?;
        let mut contest = Contest::new(self, node, goal);
        contest.read(seen)?;
        loop {
            let clocks = self.clocks();
            match contest.turn(clocks) {
                Turn::Try => {
                    if let Some(change) = contest.attempt().await? {
                        return Ok(change);
                    }
                }
                Turn::Read => match self.see(node, true).await {
                    Ok(seen) => contest.read(seen)?,
                    Err(error) => contest.failed(error)?,
                },
                Turn::Wait(until) => {
                    if let Some(obstacle) = contest.news() {
                        blocked(&obstacle);
                    }
                    contest.wait(until, clocks).await?;
                }
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

/// One contender for one node's lock.
struct Contest<'a> {
    maintenance: &'a Maintenance,
    goal: Goal<'a>,
    names: Names,
    waiter: Waiter,
    seen: Seen,
    /// The Lease changed hands with its Node, perhaps: both are to be read before the next try.
    stale: bool,
    watch: Option<BoxStream<'static, Result<LeaseEvent, Error>>>,
    /// The watch can't be read: the Lease is read every now and then instead.
    blind: bool,
    failures: u32,
    /// What was told last of what stands in the way.
    told: Option<Blocked>,
}

impl<'a> Contest<'a> {
    fn new(maintenance: &'a Maintenance, node: &str, goal: Goal<'a>) -> Self {
        let free_only = matches!(goal, Goal::Acquire(options) if options.free_only);
        Self {
            maintenance,
            goal,
            names: Names::default(),
            waiter: Waiter::new(Expiry::ServerTime, free_only),
            seen: Seen {
                node: node.to_owned(),
                row: Sight::Unread,
                lease: None,
            },
            stale: false,
            watch: None,
            blind: false,
            failures: 0,
            told: None,
        }
    }

    fn boot(&self) -> BootInstant {
        self.maintenance.api.env.boot()
    }

    fn turn(&self, clocks: Clocks) -> Turn {
        match self.waiter.turn(clocks) {
            Turn::Wait(_) if self.is_ours_to_take() => Turn::Try,
            Turn::Try if self.stale => Turn::Read,
            turn => turn,
        }
    }

    /// A read shows the Lease and the Node as they are. The watch goes on from there: one that was
    /// silent or cut is not waited for any longer.
    fn read(&mut self, seen: Seen) -> Result<(), Error> {
        self.failures = 0;
        self.stale = false;
        self.watch = None;
        self.seen = seen;
        self.take_in(Waiter::read)
    }

    /// Takes in what stands in `seen`; an obstacle that nobody can wait for ends the contest.
    fn take_in(
        &mut self,
        tell: impl FnOnce(&mut Waiter, Option<&crate::protocol::Lease>, BootInstant),
    ) -> Result<(), Error> {
        let boot = self.boot();
        let reduced = self.reduced();
        tell(&mut self.waiter, reduced.as_ref(), boot);
        match self.verdict() {
            Err(Error::Refused(refused)) if can_end(refused.refusal) => Ok(()),
            verdict => verdict,
        }
    }

    fn reduced(&mut self) -> Option<crate::protocol::Lease> {
        let lease = self.seen.lease.as_ref();
        lease.map(|lease| lease.reduced(&mut self.names))
    }

    /// What would be said if it were tried now. Nothing is sent.
    fn verdict(&self) -> Result<(), Error> {
        match self.goal {
            Goal::Acquire(options) => self.maintenance.check_acquire(&self.seen, options),
            Goal::Hold(options) => self.maintenance.check_hold(&self.seen, options),
        }
    }

    /// The caller's own lock may be entered again or made a hold, whatever the time.
    fn is_ours_to_take(&self) -> bool {
        let lease = self.seen.lease.as_ref();
        lease.is_some_and(|lease| self.maintenance.is_own(lease)) && self.verdict().is_ok()
    }

    fn plan(&self) -> Result<Plan, InvalidOption> {
        let plan = match self.goal {
            Goal::Acquire(options) => self.maintenance.plan_acquire(options),
            Goal::Hold(options) => self.maintenance.plan_hold(options, None),
        }?;
        Ok(Plan { once: true, ..plan })
    }

    /// Tries once, on the version that was seen. `None`: go on waiting.
    async fn attempt(&mut self) -> Result<Option<Change>, Error> {
        let plan = self.plan()?;
        let (maintenance, seen) = (self.maintenance, self.seen.clone());
        let node = seen.node.clone();
        match maintenance.carry_out(&node, plan, Some(seen)).await {
            Ok(change) => Ok(Some(change)),
            Err(Error::Contended { .. }) => {
                let boot = self.boot();
                self.waiter.conflicted(boot);
                Ok(None)
            }
            Err(Error::Refused(refused)) if can_end(refused.refusal) => {
                self.seen.lease = refused.lease;
                self.take_in(Waiter::read)?;
                Ok(None)
            }
            Err(error) => self.failed(error).map(|()| None),
        }
    }

    /// Goes on where the cause may pass.
    fn failed(&mut self, error: Error) -> Result<(), Error> {
        match &error {
            Error::Api(problem) if problem.leaves_writes_unknown() || problem.is_throttled() => {
                let pause = backoff(&*self.maintenance.api.env, self.failures);
                let pause = pause.max(retry_after(problem));
                self.failures += 1;
                let boot = self.boot();
                self.waiter.failed(pause.into(), boot);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// What stands in the way, where that is not what was told last.
    fn news(&mut self) -> Option<Blocked> {
        let refused = match self.verdict() {
            Err(Error::Refused(refused)) => *refused,
            _ => self.not_yet(),
        };
        let earliest = self.reduced().as_ref().and_then(takeover);
        let news = Blocked { refused, earliest };
        let told = self.told.replace(news.clone());
        let same = told.is_some_and(|told| news.is_still(&told) && told.earliest == earliest);
        (!same).then_some(news)
    }

    /// It could be taken, but for the waiter's own eyes: they saw the Lease change too short a
    /// while ago, or another who tries to take it too.
    fn not_yet(&mut self) -> Refused {
        let reduced = self.reduced();
        let now = self.maintenance.api.time.now();
        Refused {
            subject: self.maintenance.repository().subject(),
            node: self.seen.node.clone(),
            refusal: Refusal::Held,
            lease: self.seen.lease.clone(),
            state: state(reduced.as_ref(), now),
        }
    }

    /// Sleeps until there is something to do.
    async fn wait(&mut self, until: Option<BootInstant>, clocks: Clocks) -> Result<(), Error> {
        let env = self.maintenance.api.env.clone();
        let left = until.map(|until| until.since(clocks.boot).to_duration());
        let alarm = async {
            match left {
                Some(left) => env.sleep(left).await,
                None => pending().await,
            }
        };
        let blind = self.blind;
        let look = async {
            match blind {
                true => env.sleep(BLIND).await,
                false => pending().await,
            }
        };
        let node = self.seen.node.clone();
        let version = self.seen.lease.as_ref().map(NodeLease::resource_version);
        let watch = self
            .watch
            .get_or_insert_with(|| self.maintenance.watch_leases(Some(&node), version));
        futures::pin_mut!(alarm, look);
        match select(watch.next(), select(alarm, look)).await {
            Either::Left((Some(Ok(event)), _)) => {
                self.blind = false;
                self.watched(event)
            }
            Either::Left((Some(Err(_)) | None, _)) => {
                self.blind = true;
                Ok(())
            }
            Either::Right((Either::Left(_), _)) => Ok(()),
            Either::Right((Either::Right(_), _)) => match self.maintenance.see(&node, true).await {
                Ok(seen) => self.read(seen),
                Err(error) => self.failed(error),
            },
        }
    }

    fn watched(&mut self, event: LeaseEvent) -> Result<(), Error> {
        let node = &self.seen.node;
        let (lease, version) = match event {
            WatchEvent::Changed(lease) => (Some(lease.clone()), Some(lease.version)),
            WatchEvent::Listed(mut all) => {
                let lease = all.remove(node);
                let version = lease.as_ref().map(|lease| lease.version);
                (lease, version)
            }
            WatchEvent::Deleted(last) => (None, Some(last.version)),
        };
        let known = self.seen.lease.as_ref().map(|lease| lease.version);
        if known.is_some() && version.is_some() && version <= known {
            return Ok(());
        }
        // A Lease goes with its Node, which may be another by now, or none.
        let uid = |lease: &Option<NodeLease>| lease.as_ref().map(|lease| lease.uid.clone());
        self.stale |= uid(&lease) != uid(&self.seen.lease);
        self.seen.lease = lease;
        self.take_in(Waiter::watched)
    }
}

/// Whether passing time, or the holder, can end the refusal.
fn can_end(refusal: Refusal) -> bool {
    match refusal {
        Refusal::Held
        | Refusal::HeldByCaller
        | Refusal::Expired
        | Refusal::AdminHold
        | Refusal::Deleting => true,
        Refusal::OwnHold
        | Refusal::NotHolder
        | Refusal::NotHeld
        | Refusal::NotAHold
        | Refusal::ChangedHands
        | Refusal::Elected
        | Refusal::Foreign => false,
    }
}

/// What tells one obstacle from the next.
fn acquisition(refused: &Refused) -> Option<(&str, u32, Option<&str>, Option<&str>)> {
    refused.lease.as_ref().map(|lease| {
        (
            lease.uid.as_str(),
            lease.transitions,
            lease.holder(),
            lease.reason(),
        )
    })
}

fn retry_after(problem: &ApiError) -> Duration {
    let seconds = problem.status().and_then(|status| status.retry_after);
    Duration::from_secs(seconds.unwrap_or(0))
}
