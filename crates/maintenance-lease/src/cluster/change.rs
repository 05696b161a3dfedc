//! Carries out a change of a Lease: sends the reads and writes, and waits, as the [`WriteLoop`] says.

mod outcome;

use std::time::Duration;

use futures::future::{Either, select};
use futures::pin_mut;

use super::api::Api;
use super::error::ApiError;
use super::nodes::NodeRow;
use super::open_writes::OpenWriteGuard;
use super::patch::{WriteDetails, merge_patch, object};
use super::reads::{NodeAndLease, NodeLookup};
use super::writes::WriteOptions;
use crate::bugs::{self, Bug};
use crate::env::{backoff, nonce};
use crate::lease::NodeLease;
use crate::options::Unfinished;
use crate::outcome::{Change, Error, Refused, Right, SideEffect};
use crate::protocol::{
    Acquisition, Attempt, BootInstant, Caller, Clocks, Finished, Id, Lease, Names, Now, Refusal,
    Step, Verb, Write, WriteLoop, WriteOutcome, check_finished, decide, state,
};

/// How often the clocks are compared while waiting for an answer.
const TICK: Duration = Duration::from_secs(1);

/// If a policy refuses a write because of its times: the pause before each retry, and the most
/// retries.
pub(crate) const CLOCK_RETRY: Duration = Duration::from_secs(1);
const CLOCK_RETRIES: u32 = 3;

/// Whether writes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// They are.
    #[default]
    None,
    /// Decide, and send nothing.
    Client,
    /// The server checks them and stores nothing.
    Server,
}

/// A requested change of a node's Lease.
pub(crate) struct Task {
    pub(crate) node: String,
    pub(crate) verb: Verb,
    pub(crate) caller: Caller,
    pub(crate) names: Names,
    /// The intended acquisition, if the caller named or confirmed one.
    pub(crate) named_acquisition: Option<Acquisition>,
    pub(crate) extras: WriteDetails,
    /// The expired leases of unfinished work that it may replace.
    pub(crate) unfinished: Unfinished,
    pub(crate) write_options: WriteOptions,
    pub(crate) dry_run: DryRun,
    /// The time limit; `None`: until there is a decision.
    pub(crate) time_limit: Option<Duration>,
    /// Stop after a lost race: a watch will show its result.
    pub(crate) once: bool,
}

impl Task {
    /// The verb as a participle: what happens to the node.
    fn intent(&self) -> &'static str {
        match self.verb {
            Verb::Acquire { .. } | Verb::Elect(_) => "acquired",
            Verb::Renew { .. } | Verb::Extend { .. } => "renewed",
            Verb::Release | Verb::ForceRelease => "released",
            Verb::Hold { .. } => "put on hold",
            Verb::Unhold { .. } => "taken off hold",
        }
    }

    /// Whether the verb needs the Node: only verbs that begin a lock do.
    fn needs_node(&self) -> bool {
        matches!(self.verb, Verb::Acquire { .. } | Verb::Hold { .. })
    }

    /// Whether `lease` is held for another purpose than this hold's.
    fn meets_another_purpose(&self, lease: Option<&NodeLease>) -> bool {
        let purpose = lease.and_then(NodeLease::purpose);
        let is_hold = matches!(self.verb, Verb::Hold { .. });
        is_hold && purpose.is_some() && purpose != self.extras.purpose.as_deref()
    }
}

impl Api {
    /// Decides `verb` on the state that was seen, without carrying it out.
    pub(crate) fn check(
        &self,
        node: &str,
        verb: Verb,
        caller: Caller,
        meant: Option<Acquisition>,
        seen: &NodeAndLease,
        names: &mut Names,
    ) -> Result<(), Error> {
        existing_row(node, &seen.row)?;
        let reduced = seen.lease.as_ref().map(|lease| lease.reduced(names));
        let now = self.time.now();
        decide(verb, caller, reduced.as_ref(), meant, now)
            .map(drop)
            .map_err(|refusal| {
                self.refused(node, refusal, seen.lease.as_ref(), reduced.as_ref(), now)
            })
    }

    /// Refuses an expired lease that its holder left in the middle of something, unless it is one of those
    /// in `unfinished`. Clients that keep no count of acquisitions still write when they acquired.
    pub(crate) fn check_finished(
        &self,
        seen: &NodeAndLease,
        unfinished: &Unfinished,
    ) -> Result<(), Error> {
        let (Unfinished::Only(except), Some(row), Some(lease)) =
            (unfinished, seen.row.row(), &seen.lease)
        else {
            return Ok(());
        };
        let mut names = Names::default();
        let reduced = lease.reduced(&mut names);
        let acquisition = reduced.acquisition();
        if except.iter().any(|except| {
            let is_same = except.reduced(&mut names).acquisition() == acquisition;
            is_same && except.acquired() == lease.acquired()
        }) {
            return Ok(());
        }
        let now = self.time.now();
        check_finished(
            state(Some(&reduced), now),
            row.is_ready(),
            row.is_cordoned(),
        )
        .map_err(|refusal| self.refused(&seen.node, refusal, Some(lease), Some(&reduced), now))
    }

    /// The error for `refusal`, from the state that was seen at `now`.
    pub(crate) fn refused(
        &self,
        node: &str,
        refusal: Refusal,
        lease: Option<&NodeLease>,
        reduced: Option<&Lease>,
        now: Now,
    ) -> Error {
        Error::Refused(Box::new(Refused {
            subject: self.repository.subject(),
            node: node.to_owned(),
            refusal,
            lease: lease.cloned(),
            state: state(reduced, now),
        }))
    }
}

/// What follows from the failure of a write.
enum AfterFailure {
    /// Read again, decide again.
    Retry,
    /// A race was lost, and the task stops after one.
    Lost,
    /// It is the result that a dry run expects.
    Predicted(Box<Change>),
    /// An earlier write may still take effect.
    Unknown,
    /// The task fails with it.
    Final,
    /// The task fails with what went wrong afterwards.
    OtherError(Error),
}

/// A change in progress: the steps, and everything that the pure steps don't need.
pub(crate) struct Running {
    api: Api,
    task: Task,
    steps: WriteLoop,
    /// How many pauses of the machine had been suspected when the steps were last notified.
    suspected_pauses: u64,
    begun: BootInstant,
    /// The Node, if it was read and may be read.
    row: Option<NodeRow>,
    /// Which Lease there was when the Node was read.
    read_with: Option<Owned>,
    /// The Lease as last seen.
    lease: Option<NodeLease>,
    /// The state that the successful write was based on.
    before: Option<NodeLease>,
    /// The present when the clocks were last read.
    now: Now,
    /// The present when the successful write was decided.
    decided: Option<Now>,
    /// The version at which an acquisition was first seen, with the Lease's uid and its nonce.
    fencing: Option<((Id, Id), u64)>,
    /// The nonce for the next new decision.
    nonce: Id,
    side_effects: Vec<SideEffect>,
    conflicts: u32,
    tries: u32,
    /// How often a policy refused a write by the server's time.
    clock_refusals: u32,
    /// A policy refused the API user of the write, and the server was asked for the correct one.
    is_user_asked: bool,
    /// The time limit has passed, and the Lease was read again to see whether a refused write took effect.
    last_look: bool,
    /// The last write, unless it is known to have ended, and the version that it is based on.
    open_write: Option<(Option<u64>, OpenWriteGuard)>,
}

impl Running {
    pub(crate) fn new(api: &Api, mut task: Task) -> Self {
        let nonce = task.names.id(&nonce(&*api.env));
        Self {
            api: api.clone(),
            steps: WriteLoop::new(task.verb, task.caller, task.named_acquisition),
            task,
            suspected_pauses: api.time.suspected_pauses(),
            begun: api.env.boot(),
            row: None,
            read_with: None,
            lease: None,
            before: None,
            now: api.time.now(),
            decided: None,
            fencing: None,
            nonce,
            side_effects: Vec::new(),
            conflicts: 0,
            tries: 0,
            clock_refusals: 0,
            is_user_asked: false,
            last_look: false,
            open_write: None,
        }
    }

    /// Reads the Lease, and the Node if the verb needs it, unless they were `seen` already.
    pub(crate) async fn read(
        &mut self,
        seen: Option<NodeAndLease>,
    ) -> Result<Option<NodeLease>, Error> {
        let needs_node = self.task.needs_node() && self.api.repository.locks_nodes();
        let seen = match seen {
            Some(seen) => seen,
            None => self
                .api
                .read(&self.task.node, needs_node)
                .await
                .map_err(|error| self.api.lease_right("get").explain(error))?,
        };
        if needs_node {
            self.check_node(&seen.row)?;
        }
        self.row = seen.row.into_row();
        self.read_with = seen.lease.as_ref().map(Owned::of);
        Ok(seen.lease)
    }

    /// Continues with the Lease as it was seen now, until there is a decision. `None`: a race was lost and the
    /// task stops after one; the next call takes the state that is seen then.
    pub(crate) async fn resume(
        &mut self,
        lease: Option<NodeLease>,
    ) -> Result<Option<Change>, Error> {
        let result = match self.proceed(lease).await {
            // This attempt failed, perhaps after an earlier one took effect.
            Err(Error::Api(problem)) if self.steps.is_unknown() => Err(self.unknown(problem)),
            result => result,
        };
        match &result {
            // A later read may show that it took effect.
            Ok(None) => {}
            Ok(Some(change)) => {
                self.settle();
                if let Some(lease) = &change.lease {
                    self.api.open_writes.reported(&self.task.node, lease);
                }
            }
            // If the lock was lost, the write must have taken effect.
            Err(Error::Lost(_)) => self.settle(),
            Err(Error::Unknown { .. }) => self.open_write = None,
            Err(_) if self.steps.is_unknown() => self.open_write = None,
            Err(_) => self.settle(),
        }
        result
    }

    async fn proceed(&mut self, lease: Option<NodeLease>) -> Result<Option<Change>, Error> {
        let given = lease.as_ref().map(|lease| lease.version);
        let mut step = self.observed(lease);
        loop {
            self.mark_open_writes();
            let mut wait = backoff(&*self.api.env, self.tries);
            let mut problem = None;
            step = match step {
                Step::Done(finished) => return Ok(Some(self.done(finished))),
                Step::Refused(refusal) => return Err(self.refused(refusal)),
                Step::Ended => return Err(self.ended()),
                Step::Altered => {
                    let holder = self.lease.as_ref().and_then(NodeLease::holder);
                    if let (Some(holder), Some((_, open_write))) = (holder, &mut self.open_write) {
                        open_write.altered(holder);
                    }
                    return Err(self.unknown(ApiError::Altered));
                }
                Step::Read => Step::Read,
                // It would be another write, and there is no time for it.
                Step::Send(_) if self.last_look => {
                    return Err(match self.steps.is_unreported() {
                        true => self.unknown(ApiError::TimedOut(self.waited())),
                        false => self.contended(),
                    });
                }
                // Every write takes so long that too little time is left on the lock.
                Step::Send(_) if self.is_too_slow() => {
                    return Err(self.unknown(ApiError::TimedOut(self.waited())));
                }
                // The waiter decides about a Lease that it has not seen yet.
                Step::Send(attempt)
                    if self.task.once
                        && attempt.on.map(|on| on.version) != given
                        && !self.steps.is_unknown() =>
                {
                    self.steps.declined();
                    return Ok(None);
                }
                Step::Send(attempt) => {
                    // To refuse a copy would be wrong: the first may still take effect.
                    if !self.steps.is_copy()
                        && let Err(error) = self.check(&attempt).await
                    {
                        return Err(self.cannot_begin(error));
                    }
                    self.prepare(&attempt);
                    if self.task.dry_run == DryRun::Client {
                        self.check_namespace(&attempt).await?;
                        return Ok(Some(self.predict(&attempt)));
                    }
                    match self.send(&attempt).await {
                        Ok(after) => self.answered(after),
                        Err(error) => match self.failed(&attempt, &error, &mut wait).await {
                            AfterFailure::Retry => {
                                problem = Some(error);
                                Step::Read
                            }
                            AfterFailure::Lost => return Ok(None),
                            AfterFailure::Predicted(change) => return Ok(Some(*change)),
                            AfterFailure::Unknown => return Err(self.unknown(error)),
                            AfterFailure::Final => {
                                return Err(self.explain_write(error, attempt.on.is_some()));
                            }
                            AfterFailure::OtherError(another) => return Err(another),
                        },
                    }
                }
            };
            if step == Step::Read {
                self.mark_open_writes();
                self.tries += 1;
                let lease = self.read_again(wait, problem).await?;
                step = self.observed(lease);
            }
        }
    }

    /// What follows from the failure of a write. Adjusts the wait before the next read.
    async fn failed(
        &mut self,
        attempt: &Attempt,
        error: &ApiError,
        wait: &mut Duration,
    ) -> AfterFailure {
        if error.is_throttled() {
            *wait = (*wait).max(error.retry_after());
            // The next read shows if a proxy repeated a write that took effect.
            return AfterFailure::Retry;
        }
        if error.policy_code() == Some("maint-user") && !self.is_user_asked {
            self.is_user_asked = true;
            let user = self.api.api_user().await.ok();
            if let Some(name) = user.and_then(|user| user.username) {
                self.api.set_user(name);
            }
            *wait = Duration::ZERO;
            self.steps.declined();
            return AfterFailure::Retry;
        }
        if self.may_be_early(error) {
            self.clock_refusals += 1;
            *wait = (*wait).max(CLOCK_RETRY);
            self.steps.declined();
            return AfterFailure::Retry;
        }
        if error.leaves_writes_unknown() {
            self.steps.unanswered();
            return AfterFailure::Retry;
        }
        if error.is_conflict() {
            self.conflicts += 1;
            let was_unknown = self.steps.is_unknown();
            self.steps.conflicted();
            return match self.task.once && !was_unknown {
                true => AfterFailure::Lost,
                false => AfterFailure::Retry,
            };
        }
        if error.is_not_found() && attempt.on.is_none() && self.api.creates_namespace() {
            self.steps.declined();
            return self.create_namespace(attempt, wait).await;
        }
        // The Lease was deleted meanwhile.
        if error.is_not_found() && attempt.on.is_some() {
            self.steps.conflicted();
            return AfterFailure::Retry;
        }
        match self.steps.is_unknown() {
            true => AfterFailure::Unknown,
            false => AfterFailure::Final,
        }
    }

    /// Reads the clocks, after notifying the steps of any pause.
    fn clocks(&mut self) -> Clocks {
        let boot = self.api.env.boot();
        let server = self.api.time.now();
        let suspected_pauses = self.api.time.suspected_pauses();
        if std::mem::replace(&mut self.suspected_pauses, suspected_pauses) != suspected_pauses {
            self.steps.require_check();
        }
        self.now = server;
        Clocks { boot, server }
    }

    /// Passes the Lease that was read to the steps.
    fn observed(&mut self, lease: Option<NodeLease>) -> Step {
        let reduced = self.remember(lease);
        let before = self.suspected_pauses;
        let clocks = self.clocks();
        if self.suspected_pauses != before {
            // It may have been read before the pause.
            return Step::Read;
        }
        let step = self.steps.read(reduced.as_ref(), self.nonce, clocks);
        if let (Step::Done(Finished::Landed { .. }), true) = (step, self.tries > 0) {
            self.note(SideEffect::AnswerLost);
        }
        step
    }

    fn answered(&mut self, after: NodeLease) -> Step {
        if self.lease.is_none() {
            self.note(SideEffect::LeaseCreated);
        }
        let reduced = self.remember(Some(after));
        let clocks = self.clocks();
        match &reduced {
            Some(lease) => self.steps.answered(lease, self.nonce, clocks),
            None => Step::Read,
        }
    }

    /// Remembers the Lease that was seen.
    fn remember(&mut self, lease: Option<NodeLease>) -> Option<Lease> {
        let reduced = lease
            .as_ref()
            .map(|lease| lease.reduced(&mut self.task.names));
        self.api
            .open_writes
            .observed(&self.task.node, lease.as_ref());
        if let Some(lease) = &reduced
            && let Some(nonce) = lease.nonce
            && self
                .fencing
                .is_none_or(|(known, _)| known != (lease.uid, nonce))
        {
            self.fencing = Some(((lease.uid, nonce), lease.version.0));
        }
        // A new decision must not be mistaken for the earlier one.
        if self.steps.unsettled().is_some() || self.tries > 0 {
            self.nonce = self.task.names.id(&nonce(&*self.api.env));
        }
        self.lease = lease;
        reduced
    }

    /// Checks what the steps do not know: the Node, the purpose of the caller's lock, and whether the last holder finished.
    async fn check(&mut self, attempt: &Attempt) -> Result<(), Error> {
        let on = self.lease.as_ref().map(Owned::of);
        if self.task.needs_node()
            && !self.steps.has_landed()
            && self.api.repository.locks_nodes()
            && on != self.read_with
        {
            // A Lease is deleted with its Node or gets a new owner, so the Node may be another by now.
            let row = self
                .api
                .node_row(&self.task.node)
                .await
                .map_err(|error| Right::on_nodes("get").explain(error))?;
            self.check_node(&row)?;
            self.row = row.into_row();
            self.read_with = on;
        }
        if matches!(attempt.write, Write::Renew { .. })
            && self.task.meets_another_purpose(self.lease.as_ref())
        {
            return Err(self.refused(Refusal::OwnHold));
        }
        if matches!(attempt.write, Write::Acquire { .. }) && !self.steps.has_landed() {
            let seen = NodeAndLease {
                node: self.task.node.clone(),
                row: self.row.clone().map_or(NodeLookup::Unread, NodeLookup::Row),
                lease: self.lease.clone(),
            };
            self.api.check_finished(&seen, &self.task.unfinished)?;
        }
        Ok(())
    }

    /// Prepares what a write needs besides its fields.
    fn prepare(&mut self, attempt: &Attempt) {
        self.task.extras.user = self.api.user();
        self.task.extras.keeps_history = self.api.repository.locks_nodes();
        if !self.steps.has_landed() {
            self.before.clone_from(&self.lease);
            self.decided = Some(self.now);
        }
        if !self.steps.is_unreported() {
            self.track_open_write(self.lease.as_ref().map(|on| on.version.0));
        }
        if let (Write::Acquire { nonce, .. }, Some((_, open_write))) =
            (attempt.write, &mut self.open_write)
        {
            let was_held = state(attempt.on.as_ref(), self.now).is_locked();
            open_write.acquires(self.task.names.name(nonce), was_held);
        }
    }

    async fn send(&mut self, attempt: &Attempt) -> Result<NodeLease, ApiError> {
        let (api, task) = (&self.api, &self.task);
        let call = match &self.lease {
            Some(on) => {
                let mut patch = merge_patch(&attempt.write, on, &task.extras, &task.names);
                if task.once
                    && bugs::active(Bug::WaiterWithoutVersion)
                    && let Some(metadata) = patch["metadata"].as_object_mut()
                {
                    metadata.remove("resourceVersion");
                }
                api.lease_patch(&task.node, &patch, &task.write_options)
            }
            None => {
                let (extras, names) = (&task.extras, &task.names);
                let lease = object(&attempt.write, &task.node, &api.repository, extras, names);
                api.lease_creation(&lease, &task.write_options)
            }
        };
        let answer = self.unless_paused(api.call(&call)).await?;
        NodeLease::from_json(&answer, &self.api.repository).map_err(ApiError::Unreadable)
    }

    /// Abandons `request` if the machine is paused meanwhile: the server may have dropped its connection.
    async fn unless_paused<T>(
        &self,
        request: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let paused = async {
            while self.api.time.suspected_pauses() == self.suspected_pauses {
                self.api.env.sleep(TICK).await;
            }
        };
        pin_mut!(request, paused);
        // A pause that was noticed since the decision keeps the request from being sent.
        match select(paused, request).await {
            Either::Left(_) => Err(ApiError::Paused),
            Either::Right((answer, _)) => answer,
        }
    }

    /// Checks that the namespace exists if a dry run would create the Lease. Without permission to read it, that stays open.
    async fn check_namespace(&mut self, attempt: &Attempt) -> Result<(), Error> {
        if attempt.on.is_some() || self.api.has_namespace().await? != Some(false) {
            return Ok(());
        }
        if !self.api.creates_namespace() {
            let namespace = self.api.repository.namespace().to_owned();
            return Err(Error::NamespaceMissing(namespace));
        }
        self.note(SideEffect::NamespaceCreated);
        Ok(())
    }

    /// Creates the namespace of the Leases. This can be repeated: a namespace that exists by now is no error.
    async fn create_namespace(&mut self, attempt: &Attempt, wait: &mut Duration) -> AfterFailure {
        let created = self.api.create_namespace(&self.task.write_options).await;
        match created {
            Ok(true) => self.note(SideEffect::NamespaceCreated),
            Ok(false) => return AfterFailure::Retry,
            Err(error) if error.may_pass() => {
                *wait = (*wait).max(error.retry_after());
                return AfterFailure::Retry;
            }
            Err(error) => {
                let right = Right {
                    verb: "create",
                    resource: "namespaces",
                    namespace: None,
                };
                return AfterFailure::OtherError(right.explain(error));
            }
        }
        // A dry run created nothing, so the Lease would be refused again.
        if self.task.dry_run == DryRun::Server {
            return AfterFailure::Predicted(Box::new(self.predict(attempt)));
        }
        *wait = Duration::ZERO;
        AfterFailure::Retry
    }

    /// Waits, then reads the Lease again. Gives up if the time limit has passed, or if nothing can be read and
    /// no write is unknown.
    async fn read_again(
        &mut self,
        mut wait: Duration,
        mut problem: Option<ApiError>,
    ) -> Result<Option<NodeLease>, Error> {
        loop {
            let waited = self.waited();
            if self
                .task
                .time_limit
                .is_some_and(|time_limit| waited.saturating_add(wait) >= time_limit)
            {
                let is_refused = !self.steps.is_unknown() && self.steps.unsettled().is_some();
                let is_throttled = problem.as_ref().is_some_and(ApiError::is_throttled);
                if !is_refused || is_throttled || std::mem::replace(&mut self.last_look, true) {
                    return Err(self.out_of_time(problem));
                }
                wait = Duration::ZERO;
            }
            self.api.env.sleep(wait).await;
            self.clocks();
            let api = self.api.once();
            match self.unless_paused(api.lease(&self.task.node)).await {
                Ok(lease) => return Ok(lease),
                Err(ApiError::Paused) => wait = Duration::ZERO,
                Err(error)
                    if self.steps.unsettled().is_some()
                        || self.steps.is_unknown()
                        || error.is_throttled() =>
                {
                    self.tries += 1;
                    wait = backoff(&*self.api.env, self.tries);
                    problem = Some(error);
                }
                Err(error) => return Err(self.api.lease_right("get").explain(error)),
            }
        }
    }

    /// Whether a policy refused the write because of a time, which it compares with the server's clock. A
    /// confirmed takeover is refused for another reason.
    fn may_be_early(&self, error: &ApiError) -> bool {
        let is_of_takeover =
            self.task.extras.takes_over && error.policy_code() == Some("maint-live-lock");
        error.is_by_time() && !is_of_takeover && self.clock_refusals < CLOCK_RETRIES
    }

    /// Whether a write took effect and the time limit has passed.
    fn is_too_slow(&self) -> bool {
        let has_landed = self.steps.is_unreported() || self.steps.has_landed();
        let time_limit = self.task.time_limit;
        has_landed && time_limit.is_some_and(|time_limit| self.waited() >= time_limit)
    }

    fn waited(&self) -> Duration {
        self.api.env.boot().since(self.begun).to_duration()
    }

    fn note(&mut self, side_effect: SideEffect) {
        if !self.side_effects.contains(&side_effect) {
            self.side_effects.push(side_effect);
        }
    }

    /// Records whether there is, or may still be, a lock that the caller does not know about.
    fn mark_open_writes(&mut self) {
        if self.steps.is_unreported() {
            // It stays open until the caller knows the result, even if the Lease changes.
            if let Some((_, open_write)) = &mut self.open_write {
                open_write.landed();
            }
        } else if self.steps.unsettled().is_none() {
            self.settle();
        }
    }

    /// Records that a write on this version may take effect.
    fn track_open_write(&mut self, on: Option<u64>) {
        let is_tracked = self
            .open_write
            .as_ref()
            .is_some_and(|(tracked, _)| *tracked == on);
        if self.task.dry_run == DryRun::None && !is_tracked {
            self.settle();
            self.open_write = Some((on, self.api.open_writes.open(&self.task.node, on)));
        }
    }

    /// Records that the write has taken effect, or never will.
    pub(crate) fn settle(&mut self) {
        if let Some((_, open_write)) = self.open_write.take() {
            open_write.settle();
        }
    }

    /// Whether the last write, if not settled, creates the Lease.
    pub(crate) fn creates(&self) -> bool {
        self.steps
            .unsettled()
            .is_some_and(|attempt| attempt.on.is_none())
    }

    /// The outcome of the last write, as `lease` shows; [`WriteOutcome::Failed`] also if nothing is unsettled.
    pub(crate) fn outcome(&mut self, lease: Option<&NodeLease>) -> WriteOutcome {
        let reduced = lease.map(|lease| lease.reduced(&mut self.task.names));
        self.steps.outcome(reduced.as_ref())
    }

    fn check_node(&mut self, row: &NodeLookup) -> Result<(), Error> {
        match existing_row(&self.task.node, row)? {
            Some(row) => self.task.extras.node_uid = Some(row.uid.clone()),
            None => self.note(SideEffect::NodeUnreadable),
        }
        Ok(())
    }
}

/// A Lease, and the Node that it belongs to.
#[derive(PartialEq, Eq)]
struct Owned {
    lease_uid: String,
    node_uid: Option<String>,
}

impl Owned {
    fn of(lease: &NodeLease) -> Self {
        Self {
            lease_uid: lease.uid.clone(),
            node_uid: lease.node_uid(),
        }
    }
}

/// The Node's row, if it may be read. A Node that is gone or being deleted is an error.
fn existing_row<'a>(node: &str, row: &'a NodeLookup) -> Result<Option<&'a NodeRow>, Error> {
    match row {
        NodeLookup::Row(row) if row.deleting => Err(Error::NodeDeleting(node.to_owned())),
        NodeLookup::Row(row) => Ok(Some(row)),
        NodeLookup::Missing => Err(Error::NodeNotFound(node.to_owned())),
        NodeLookup::Forbidden | NodeLookup::Unread => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::env::testing::Paused;
    use crate::maintenance::Maintenance;
    use crate::options::Acquire;

    #[tokio::test]
    async fn a_request_is_not_begun_after_a_pause_was_noticed() {
        let machine = Arc::new(Paused::default());
        let client = sandbox::Sandbox::new().client();
        let maintenance = Maintenance::builder(client, "alice")
            .env(machine.clone())
            .build()
            .unwrap();
        let plan = maintenance.plan_acquire(&Acquire::new()).unwrap();
        let running = Running::new(&maintenance.api, maintenance.task("n", plan));
        machine.set_ahead(9_000_000);
        let mut is_begun = false;
        let request = async {
            is_begun = true;
            Ok(())
        };
        let result = running.unless_paused(request).await;
        assert!(matches!(result, Err(ApiError::Paused)), "{result:?}");
        assert!(!is_begun);
    }
}
