//! One contender for one node's lock: what it saw, reported and tried.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{Either, select};

use super::progress::{Blocked, Goal, Progress};
use super::spread::Spread;
use crate::bugs::{self, Bug};
use crate::cluster::change::{CLOCK_RETRY, Running};
use crate::cluster::reads::NodeAndLease;
use crate::env::backoff;
use crate::follow::{Followed, Follower};
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::maintenance::verbs::Plan;
use crate::options::{InvalidOption, Unfinished};
use crate::outcome::{Change, Error, Refused};
use crate::protocol::{
    BootInstant, Clocks, Expiry, Lease, Names, Refusal, Span, Waiter, WaiterAction, WriteOutcome,
    state, takeover,
};

/// The clocks are checked at least this often, because timers stop while a machine sleeps and the boot clock
/// does not.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// A Node that was read longer ago may have been replaced or marked for deletion: it is read again before the lock is
/// acquired. Shorter waits do without, so a release hands over by one write.
pub(crate) const OLDEST_NODE: Span = Span::seconds(30);

/// When the Node and the Lease were last read.
#[derive(Clone, Copy)]
pub(crate) struct LastRead {
    /// When the read was sent.
    sent: BootInstant,
    /// How many pauses of the machine had been suspected by then.
    suspected_pauses: u64,
    /// The contender has waited since.
    has_waited: bool,
}

/// One contender for one node's lock.
pub(crate) struct Contender<'a> {
    maintenance: &'a Maintenance,
    goal: Goal<'a>,
    names: Names,
    waiter: Waiter,
    seen: NodeAndLease,
    /// The last read of both; `None`: they must be read before the next attempt.
    last_read: Option<LastRead>,
    follower: Follower,
    failures: u32,
    /// An attempt that lost its race, as far as is known.
    contended: Option<Running>,
    /// The last report of what blocks the lock.
    reported: Option<Blocked>,
    spread: Spread,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(maintenance: &'a Maintenance, node: &str, goal: Goal<'a>) -> Self {
        let mut names = Names::default();
        let own = maintenance.caller(&mut names);
        let waiter = match goal {
            Goal::Acquire(options) => {
                let waiter = Waiter::new(Expiry::ServerTime);
                if options.reentry {
                    waiter.or_own(own)
                } else {
                    waiter
                }
            }
            Goal::Hold(_) => Waiter::new(Expiry::ServerTime).or_own(own),
            Goal::Elect(_) => Waiter::new(Expiry::OwnEyes),
        };
        Self {
            maintenance,
            goal,
            names,
            waiter,
            seen: NodeAndLease::without_row(node, None),
            last_read: None,
            follower: maintenance.follow([node]),
            failures: 0,
            contended: None,
            reported: None,
            spread: Spread::default(),
        }
    }

    fn boot(&self) -> BootInstant {
        self.maintenance.api.env.boot()
    }

    /// Waits until it may try.
    pub(crate) async fn until_free(
        &mut self,
        progress: &mut (impl FnMut(Progress<'_>) + Send),
    ) -> Result<(), Error> {
        loop {
            if self.has_settled() {
                return Ok(());
            }
            let clocks = self.maintenance.clocks();
            match self.due(clocks) {
                WaiterAction::Try => return Ok(()),
                WaiterAction::Read => {
                    let begun = self.begin_read();
                    let once = self.maintenance.once();
                    match once.read(&self.seen.node, true).await {
                        Ok(seen) => self.read(seen, begun)?,
                        Err(error) => self.failed(error)?,
                    }
                }
                WaiterAction::Wait(until) => {
                    if let Some(blocked) = self.changed_blocker(until, clocks) {
                        progress(Progress::Blocked(&blocked));
                    }
                    match self.wait(until, clocks).await? {
                        Some(Followed::Unwatched(cause)) => progress(Progress::Unwatched(&cause)),
                        Some(Followed::Watched) => progress(Progress::Watched),
                        Some(Followed::Changed(_)) | None => {}
                    }
                }
            }
        }
    }

    /// Whether the Lease shows that an attempt that was believed lost took effect.
    fn has_settled(&mut self) -> bool {
        let lease = self.seen.lease.as_ref();
        let contended = self.contended.as_mut();
        contended.is_some_and(|running| {
            matches!(
                running.outcome(lease),
                WriteOutcome::Landed | WriteOutcome::Ended
            )
        })
    }

    fn due(&mut self, clocks: Clocks) -> WaiterAction {
        let turn = self.waiter.due(clocks);
        if turn != WaiterAction::Try {
            return turn;
        }
        let version = self.waiter.seen().map(|lease| lease.version);
        let env = &*self.maintenance.api.env;
        let start = self.spread.start(version, clocks.boot, env);
        if clocks.boot < start {
            return WaiterAction::Wait(Some(start));
        }
        match self.must_read(clocks.boot) {
            true => WaiterAction::Read,
            false => WaiterAction::Try,
        }
    }

    /// Whether the Node and the Lease must be read before the next attempt.
    fn must_read(&self, boot: BootInstant) -> bool {
        if bugs::active(Bug::NodeFromBeforeWait) {
            return false;
        }
        let Some(last) = self.last_read else {
            return true;
        };
        // A state that was seen before a pause may be outdated after it.
        let was_paused = last.suspected_pauses != self.maintenance.api.time.suspected_pauses();
        was_paused || (last.has_waited && self.depends_on_more(boot.since(last.sent)))
    }

    /// Whether an attempt depends on more than the version of the Lease that it is a write on. The Node was read `age` ago.
    fn depends_on_more(&self, age: Span) -> bool {
        let unfinished = match self.goal {
            Goal::Acquire(options) => &options.unfinished,
            Goal::Hold(options) => &options.unfinished,
            Goal::Elect(_) => return false,
        };
        let node = self.seen.row.row().map(|row| row.uid.as_str());
        let is_old = node.is_some() && age > OLDEST_NODE;
        let Some(lease) = &self.seen.lease else {
            return is_old;
        };
        let has_holder = lease.holder().is_some();
        // The attempt would write the Node that was read as the Lease's owner.
        let corrects_owner = node.is_some() && node != lease.node_uid().as_deref();
        // The state of the Node decides about an expired lease.
        let may_be_unfinished = has_holder && matches!(unfinished, Unfinished::Only(_));
        // Nothing is written under the caller's own hold.
        is_old || corrects_owner || may_be_unfinished || lease.is_hold()
    }

    /// A read of the Node and the Lease that is sent now.
    pub(crate) fn begin_read(&self) -> LastRead {
        LastRead {
            sent: self.boot(),
            suspected_pauses: self.maintenance.api.time.suspected_pauses(),
            has_waited: false,
        }
    }

    /// A read shows the current Lease and Node. The watch continues from there: a silent or cut watch is not
    /// waited for.
    pub(crate) fn read(&mut self, seen: NodeAndLease, begun: LastRead) -> Result<(), Error> {
        self.failures = 0;
        self.last_read = Some(begun);
        self.follower.resume_after(&seen.lease);
        self.seen = seen;
        self.drop_failed_attempt();
        self.observe(Waiter::read)
    }

    /// An attempt that lost its race has failed once the Lease has changed without it.
    fn drop_failed_attempt(&mut self) {
        let lease = self.seen.lease.as_ref();
        let has_failed = |running: &mut Running| running.outcome(lease) == WriteOutcome::Failed;
        if let Some(mut failed) = self.contended.take_if(has_failed) {
            failed.settle();
        }
    }

    /// Uses the state in `seen`. An obstacle that no waiting can remove ends the wait.
    fn observe(
        &mut self,
        observe: impl FnOnce(&mut Waiter, Option<&Lease>, BootInstant),
    ) -> Result<(), Error> {
        let boot = self.boot();
        let reduced = self.reduced();
        let lease = self.seen.lease.as_ref();
        self.maintenance
            .api
            .open_writes
            .observed(&self.seen.node, lease);
        observe(&mut self.waiter, reduced.as_ref(), boot);
        match self.verdict() {
            Err(Error::Refused(refused)) if self.can_pass(refused.refusal) => Ok(()),
            // The Node is read again before that is decided.
            Err(Error::Refused(refused))
                if self.last_read.is_none_or(|last| last.has_waited)
                    && matches!(refused.refusal, Refusal::Unfinished { .. }) =>
            {
                Ok(())
            }
            verdict => verdict,
        }
    }

    fn reduced(&mut self) -> Option<Lease> {
        let lease = self.seen.lease.as_ref();
        lease.map(|lease| lease.reduced(&mut self.names))
    }

    /// The result of an attempt now. Nothing is sent.
    fn verdict(&self) -> Result<(), Error> {
        match self.goal {
            Goal::Acquire(options) => self.maintenance.check_acquire(&self.seen, options),
            Goal::Hold(options) => self.maintenance.check_hold(&self.seen, options),
            Goal::Elect(duration) => self.maintenance.check_elect(&self.seen, duration),
        }
    }

    fn plan(&self) -> Result<Plan, InvalidOption> {
        let plan = match self.goal {
            Goal::Acquire(options) => self.maintenance.plan_acquire(options),
            Goal::Hold(options) => self.maintenance.plan_hold(options, &self.seen.node),
            Goal::Elect(duration) => {
                let unchanged = self.waiter.seen().map(|lease| lease.version);
                self.maintenance.plan_election(duration, unchanged)
            }
        }?;
        Ok(Plan { once: true, ..plan })
    }

    /// Tries once, on the version that was seen. `None`: keep waiting.
    pub(crate) async fn attempt(&mut self) -> Result<Option<Change>, Error> {
        if let Some(mut running) = self.contended.take() {
            if running.outcome(self.seen.lease.as_ref()) != WriteOutcome::Failed {
                // It took effect after all, or a write on this version may still do so.
                let result = running.resume(self.seen.lease.clone()).await;
                return self.attempted(running, result);
            }
            running.settle();
        }
        let task = self.maintenance.task(&self.seen.node, self.plan()?);
        let mut running = Running::new(&self.maintenance.api, task);
        let result = match running.read(Some(self.seen.clone())).await {
            Ok(lease) => running.resume(lease).await,
            Err(error) => Err(error),
        };
        self.attempted(running, result)
    }

    fn attempted(
        &mut self,
        running: Running,
        result: Result<Option<Change>, Error>,
    ) -> Result<Option<Change>, Error> {
        match result {
            Ok(Some(change)) => Ok(Some(change)),
            Ok(None) => {
                // A proxy may have sent it twice and passed on the second answer.
                self.contended = Some(running);
                self.spread.lost();
                let boot = self.boot();
                self.waiter.conflicted(boot);
                Ok(None)
            }
            Err(Error::Refused(refused)) => self.refused(refused).map(|()| None),
            Err(error) => self.failed(error).map(|()| None),
        }
    }

    /// An attempt was refused. Continues if that may end.
    fn refused(&mut self, refused: Box<Refused>) -> Result<(), Error> {
        if !self.can_pass(refused.refusal) {
            return Err(Error::Refused(refused));
        }
        self.see(refused.lease);
        self.observe(Waiter::read)
    }

    /// The same, for an attempt that its caller made: somebody else was quicker.
    pub(crate) fn lost(&mut self, refused: Box<Refused>) -> Result<(), Error> {
        self.spread.lost();
        self.reported = None;
        self.refused(refused)
    }

    /// Whether it may try now.
    pub(crate) fn may_try(&mut self, clocks: Clocks) -> bool {
        self.due(clocks) == WaiterAction::Try
    }

    /// Whether the Lease was read before.
    pub(crate) fn has_read(&self) -> bool {
        self.last_read.is_some()
    }

    /// Why it has not acquired the lock, as far as it has seen.
    pub(crate) fn obstacle(&mut self) -> Option<Refused> {
        match self.verdict() {
            Err(Error::Refused(refused)) => Some(*refused),
            _ => self.not_yet(),
        }
    }

    /// Continues if the cause may be temporary.
    pub(crate) fn failed(&mut self, error: Error) -> Result<(), Error> {
        match &error {
            Error::Api(problem) if problem.may_pass() || problem.is_by_time() => {
                let mut pause = backoff(&*self.maintenance.api.env, self.failures);
                if problem.is_by_time() {
                    pause = pause.max(CLOCK_RETRY);
                    // What was seen would be refused again.
                    self.last_read = None;
                }
                let pause = pause.max(problem.retry_after());
                self.failures += 1;
                let boot = self.boot();
                self.waiter.failed(pause.into(), boot);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// What blocks the acquisition, if it differs from the last report.
    pub(super) fn changed_blocker(
        &mut self,
        until: Option<BootInstant>,
        clocks: Clocks,
    ) -> Option<Blocked> {
        let refused = self.obstacle()?;
        let elects = matches!(self.goal, Goal::Elect(_));
        let earliest = match self.goal {
            Goal::Elect(_) => until.map(|until| clocks.server.latest + until.since(clocks.boot)),
            _ => self.reduced().as_ref().and_then(takeover),
        };
        let blocked = Blocked { refused, earliest };
        // A renewal by the same leader is not reported again.
        let renewed = |reported: &Blocked| reported.earliest != earliest && !elects;
        let reported = self.reported.as_ref();
        if reported.is_some_and(|reported| blocked.is_still(reported) && !renewed(reported)) {
            return None;
        }
        self.reported = Some(blocked.clone());
        Some(blocked)
    }

    /// The lock could be acquired, except that this waiter saw its holder renew it too recently. `None`: nobody
    /// holds it, and another caller is about to.
    fn not_yet(&mut self) -> Option<Refused> {
        let reduced = self.reduced()?;
        reduced.holder?;
        Some(Refused {
            subject: self.maintenance.repository().subject(),
            node: self.seen.node.clone(),
            refusal: Refusal::Held,
            lease: self.seen.lease.clone(),
            state: state(Some(&reduced), self.maintenance.api.time.now()),
        })
    }

    /// Sleeps until there is something to do. Returns whether the Lease can be watched, if that has changed.
    pub(super) async fn wait(
        &mut self,
        until: Option<BootInstant>,
        clocks: Clocks,
    ) -> Result<Option<Followed>, Error> {
        let nap = until.map_or(LONGEST_NAP, |until| {
            until.since(clocks.boot).to_duration().min(LONGEST_NAP)
        });
        let nap = self.maintenance.api.env.sleep(nap);
        if let Some(last) = &mut self.last_read {
            last.has_waited = true;
        }
        let followed = match select(self.follower.next().boxed(), nap).await {
            Either::Left((followed, _)) => followed?,
            Either::Right(_) => return Ok(None),
        };
        match followed {
            Followed::Changed(leases) => {
                for lease in leases.into_values() {
                    self.watched(lease)?;
                }
                Ok(None)
            }
            followed => Ok(Some(followed)),
        }
    }

    fn watched(&mut self, lease: Option<NodeLease>) -> Result<(), Error> {
        self.see(lease);
        // It may be an old event of another Lease. Only a version can tell, and a creation has none.
        let creates = self.contended.as_ref().is_some_and(Running::creates);
        if creates {
            self.last_read = None;
        }
        if !creates && self.seen.lease.is_some() {
            self.drop_failed_attempt();
        }
        self.observe(Waiter::watched)
    }

    /// Remembers the Lease as it was seen without its Node.
    fn see(&mut self, lease: Option<NodeLease>) {
        let uid = |lease: &Option<NodeLease>| lease.as_ref().map(|lease| lease.uid.clone());
        // A Lease is deleted with its Node, which may have been replaced.
        if uid(&lease) != uid(&self.seen.lease) {
            self.last_read = None;
        }
        self.seen.lease = lease;
    }

    /// Whether time, or the holder, can end the refusal.
    fn can_pass(&self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::Held | Refusal::HeldByCaller | Refusal::AdminHold | Refusal::Deleting => true,
            // Another command of the caller may end it. A hold is refused its own hold only for another purpose.
            Refusal::OwnHold => matches!(self.goal, Goal::Acquire(_)),
            Refusal::Expired
            | Refusal::Unfinished { .. }
            | Refusal::NotHolder
            | Refusal::NotHeld
            | Refusal::NotAHold
            | Refusal::ChangedHands
            | Refusal::Elected
            | Refusal::Foreign
            | Refusal::TooLong { .. } => false,
        }
    }
}
