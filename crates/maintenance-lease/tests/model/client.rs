//! One client: the shipped [`Waiter`] and [`WriteLoop`] until it holds, then the shipped [`Keeper`].
//!
//! This is what drives them, and no more: it says when to look, sends what they say, and hands the
//! answers on. One request is under way at a time.

use maintenance_lease::protocol::{
    Acquisition, Attempt, BootInstant, Caller, Clocks, Finished, Id, Keeper, KeeperAction, Lease,
    Now, Refusal, Span, Step, Terms, Waiter, WaiterAction, Write, WriteLoop, WriteOutcome,
};

use crate::store::{Event, caller};
use crate::world::Setting;

/// A person or a program with one identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) caller: Caller,
    pub(crate) role: Role,
    /// What its boot clock shows.
    pub(crate) boot: BootInstant,
    /// Its machine stands still, and its boot clock with it.
    pub(crate) halted: bool,
    /// What it has heard since its machine last stood still.
    pub(crate) knowledge: Knowledge,
    /// Its acquisition that landed, while it has not been told.
    pub(crate) landed: Option<Id>,
    /// The end of what its last landed write lets it believe, whether it has heard of it or not.
    pub(crate) granted: Option<BootInstant>,
    /// Its last acquisition that was broken, and until when it may act on it.
    pub(crate) broken: Option<(Acquisition, BootInstant)>,
}

/// What a client heard of the server, in answer to what it sent since its machine last stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Knowledge {
    /// It can't know how late it is.
    Nothing,
    /// It knows how late it is, and not who has the Lease.
    ServerTime,
    /// It knows what the Lease says.
    Lease,
}

/// What a client is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are three clients, and boxes cost more"
)]
pub(crate) enum Role {
    Idle,
    Waiting(Contender),
    Holding(Holding),
    /// It gives a lease back, or carries out what an administrator told it to.
    Changing(Changing),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Contender {
    pub(crate) waiter: Waiter,
    /// The try that is being made. It reads unless it awaits an answer.
    pub(crate) running: Option<WriteLoop>,
    /// The try that lost its race, as far as it knows.
    pub(crate) contended: Option<WriteLoop>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) keeper: Keeper,
    /// The machine stood still, and the work rests until a check has gone well.
    pub(crate) resting: bool,
    /// The keeper was asked after the deadline, and did not end the work.
    pub(crate) runaway: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Changing {
    /// The change. It reads unless it awaits an answer.
    pub(crate) steps: WriteLoop,
    /// The acquisition of another that it was confirmed to break.
    pub(crate) breaks: Option<Acquisition>,
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Nothing,
    Read,
    /// It reads, and listens to no answer to what it sent before.
    Check,
    Write(Attempt),
}

/// What a step must never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Violation {
    /// The waiter said to try, and the decision was not to write.
    RefusedTry,
    /// A loss was declared and then taken back.
    Revived,
    /// A write was taken for failed that may still land.
    Misjudged,
    /// A check was due and was put off.
    CheckDelayed,
    /// Success was reported with less than a third of the duration left.
    StaleSuccess,
    /// The own acquisition stood there and was taken for another's.
    Unrecognized,
    /// What had landed and was ended by somebody was done again.
    Repeated,
}

/// Before every deadline.
const BEGINNING: BootInstant = BootInstant::from_micros(i64::MIN / 2);

/// A check that failed is made again after no longer than this.
const CHECK_PAUSE: Span = Span::seconds(1);

/// What is at hand when something is handed to a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepContext<'a> {
    pub(crate) clocks: Clocks,
    /// Marks what is decided anew.
    pub(crate) nonce: Id,
    pub(crate) setting: &'a Setting,
}

impl Contender {
    pub(crate) fn new(waiter: Waiter) -> Self {
        Self {
            waiter,
            running: None,
            contended: None,
        }
    }

    fn tries(&self) -> impl Iterator<Item = &WriteLoop> {
        self.running.iter().chain(&self.contended)
    }
}

impl Client {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            caller: caller(number),
            role: Role::Idle,
            boot: BootInstant::from_micros(0),
            halted: false,
            knowledge: Knowledge::Lease,
            landed: None,
            granted: None,
            broken: None,
        }
    }

    /// Whether a Lease that `holder` holds is this client's own.
    pub(crate) fn owns(&self, holder: Id) -> bool {
        [self.caller.identity, self.caller.hold_identity].contains(&holder)
    }

    /// The acquisition under which work of this client may be running. This lasts until the deadline,
    /// even if the loss was declared before, because work takes time to end.
    pub(crate) fn works_under(&self) -> Option<Acquisition> {
        match &self.role {
            Role::Holding(holding) if !self.halted && !holding.resting => {
                let running = holding.runaway || self.boot <= holding.keeper.deadline();
                running.then(|| holding.keeper.acquisition())
            }
            _ => None,
        }
    }

    /// The acquisition that it may act on although its lock was broken.
    pub(crate) fn excused(&self) -> Option<Acquisition> {
        self.broken
            .filter(|(_, until)| self.boot <= *until)
            .map(|(of, _)| of)
    }

    pub(crate) fn keeper(&self) -> Option<&Keeper> {
        match &self.role {
            Role::Holding(holding) => Some(&holding.keeper),
            _ => None,
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.keeper().is_some_and(|keeper| keeper.loss().is_some())
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.role, Role::Waiting(_))
    }

    /// What it sent and has not settled.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = Attempt> {
        let (waiting, changing) = match &self.role {
            Role::Waiting(contender) => (Some(contender), None),
            Role::Changing(changing) => (None, Some(&changing.steps)),
            Role::Idle | Role::Holding(_) => (None, None),
        };
        let tries = waiting.into_iter().flat_map(Contender::tries);
        tries.chain(changing).filter_map(WriteLoop::unsettled)
    }

    /// What it takes for the present, where `server` is an estimate that an answer just gave.
    pub(crate) fn clocks(&self, server: Now) -> Clocks {
        let server = match self.knowledge {
            // By a clock that stood still it is long ago: who writes that must not believe it.
            Knowledge::Nothing => Now {
                latest: server.latest - Span::seconds(LONG_AGO),
                bounded: false,
                ..server
            },
            Knowledge::ServerTime | Knowledge::Lease => server,
        };
        Clocks {
            boot: self.boot,
            server,
        }
    }

    /// An answer came to something that it sent since its machine last stood still.
    pub(crate) fn learns(&mut self, what: Knowledge) {
        self.knowledge = self.knowledge.max(what);
    }

    /// It ends what it was at.
    pub(crate) fn becomes(&mut self, role: Role) {
        self.role = role;
        self.landed = None;
    }

    /// It is this client's turn on its machine. `busy`: its request is still under way.
    pub(crate) fn run(&mut self, busy: bool, context: StepContext<'_>) -> Result<Move, Violation> {
        let clocks = context.clocks;
        match &mut self.role {
            Role::Idle => Ok(Move::Nothing),
            Role::Holding(holding) => holding.run(busy, clocks),
            _ if busy => Ok(Move::Nothing),
            Role::Changing(_) => Ok(Move::Read),
            Role::Waiting(contender) if contender.running.is_some() => Ok(Move::Read),
            Role::Waiting(contender) => match contender.waiter.due(clocks) {
                WaiterAction::Wait(_) => Ok(Move::Nothing),
                WaiterAction::Read => Ok(Move::Read),
                WaiterAction::Try => {
                    let seen = contender.waiter.seen().copied();
                    let verb = context.setting.bid(seen.as_ref());
                    // On the version of a try that lost its race, that one is sent again: it may still take effect.
                    let unsettled = contender.contended.take();
                    let mut steps =
                        unsettled.unwrap_or_else(|| WriteLoop::new(verb, self.caller, None));
                    let step = steps.read(seen.as_ref(), context.nonce, clocks);
                    contender.running = Some(steps);
                    match step {
                        Step::Refused(_) => Err(Violation::RefusedTry),
                        step => self.takes(step, seen.as_ref(), context),
                    }
                }
            },
        }
    }

    /// Begins a change on what it has seen.
    pub(crate) fn change(
        &mut self,
        mut changing: Changing,
        seen: Option<&Lease>,
        context: StepContext<'_>,
    ) -> Result<Move, Violation> {
        let step = changing.steps.read(seen, context.nonce, context.clocks);
        self.role = Role::Changing(changing);
        self.takes(step, seen, context)
    }

    /// What it read.
    pub(crate) fn read(
        &mut self,
        seen: Option<&Lease>,
        context: StepContext<'_>,
    ) -> Result<Move, Violation> {
        let StepContext { clocks, nonce, .. } = context;
        self.recognizes(seen);
        let step = match &mut self.role {
            Role::Idle => return Ok(Move::Nothing),
            Role::Holding(holding) => {
                holding.keeper.read(seen, clocks);
                return Ok(Move::Nothing);
            }
            Role::Waiting(contender) => match &mut contender.running {
                None => {
                    contender.waiter.read(seen, clocks.boot);
                    return self.settle(context);
                }
                Some(steps) => steps.read(seen, nonce, clocks),
            },
            Role::Changing(changing) => changing.steps.read(seen, nonce, clocks),
        };
        self.takes(step, seen, context)
    }

    /// It could not read.
    pub(crate) fn unread(&mut self, clocks: Clocks) {
        match &mut self.role {
            Role::Waiting(contender) if contender.running.is_none() => {
                contender.waiter.failed(Span::TICK, clocks.boot);
            }
            Role::Holding(holding) => holding.keeper.unread(clocks),
            Role::Idle | Role::Waiting(_) | Role::Changing(_) => {}
        }
    }

    /// The server answered what it wrote with the Lease as it is now.
    pub(crate) fn answered(
        &mut self,
        lease: &Lease,
        context: StepContext<'_>,
    ) -> Result<Move, Violation> {
        let StepContext { clocks, nonce, .. } = context;
        self.recognizes(Some(lease));
        let step = match &mut self.role {
            Role::Idle => return Ok(Move::Nothing),
            Role::Holding(holding) => {
                holding.keeper.answered(lease, clocks);
                return Ok(Move::Nothing);
            }
            Role::Waiting(contender) => match &mut contender.running {
                None => return Ok(Move::Nothing),
                Some(steps) => steps.answered(lease, nonce, clocks),
            },
            Role::Changing(changing) => changing.steps.answered(lease, nonce, clocks),
        };
        self.takes(step, Some(lease), context)
    }

    /// The server refused it: the Lease is at another version.
    pub(crate) fn conflicted(&mut self, clocks: Clocks) {
        match &mut self.role {
            Role::Idle => {}
            Role::Holding(holding) => holding.keeper.conflicted(clocks),
            Role::Changing(changing) => changing.steps.conflicted(),
            Role::Waiting(contender) => {
                if let Some(mut steps) = contender.running.take() {
                    let was_unknown = steps.is_unknown();
                    steps.conflicted();
                    if was_unknown {
                        contender.running = Some(steps);
                    } else {
                        // What was seen is what it was sent on, which says nothing of it.
                        contender.contended = Some(steps);
                        contender.waiter.conflicted(clocks.boot);
                    }
                }
            }
        }
    }

    /// No answer to what it wrote came, or none of the server.
    pub(crate) fn unanswered(&mut self, clocks: Clocks) {
        match &mut self.role {
            Role::Idle => {}
            Role::Holding(holding) => holding.keeper.unanswered(clocks),
            Role::Changing(changing) => changing.steps.unanswered(),
            Role::Waiting(contender) => {
                if let Some(steps) = &mut contender.running {
                    steps.unanswered();
                }
            }
        }
    }

    /// What its watch shows.
    pub(crate) fn watched(
        &mut self,
        event: &Event,
        context: StepContext<'_>,
    ) -> Result<Move, Violation> {
        let before = self.clone();
        self.sees(event, context.clocks);
        match *self == before {
            true => Ok(Move::Nothing),
            false => self.settle(context),
        }
    }

    /// It takes in what its watch shows, and draws no conclusions.
    pub(crate) fn sees(&mut self, event: &Event, clocks: Clocks) {
        match (&mut self.role, event) {
            // A client that writes reads its watch afterwards.
            (Role::Waiting(contender), _) if contender.running.is_some() => {}
            (Role::Waiting(contender), Event::Shown(lease)) => {
                contender.waiter.watched(Some(lease), clocks.boot);
            }
            (Role::Waiting(contender), Event::Gone(_)) => {
                contender.waiter.watched(None, clocks.boot);
            }
            (Role::Holding(holding), Event::Shown(lease)) => holding.keeper.watched(lease, clocks),
            (Role::Holding(holding), Event::Gone(last)) => holding.keeper.watched_deletion(last),
            (Role::Idle | Role::Changing(_), _) => {}
        }
    }

    /// Its machine goes on after a standstill, which it notices before anything else runs.
    pub(crate) fn resume(&mut self) {
        self.halted = false;
        self.knowledge = Knowledge::Nothing;
        match &mut self.role {
            Role::Idle => {}
            Role::Waiting(Contender {
                running, contended, ..
            }) => {
                running
                    .iter_mut()
                    .chain(contended)
                    .for_each(WriteLoop::require_check);
            }
            Role::Changing(changing) => changing.steps.require_check(),
            Role::Holding(holding) => {
                holding.keeper.require_check();
                holding.resting = true;
            }
        }
    }

    /// The work rests no longer where the keeper lets it go on.
    pub(crate) fn wake_work(&mut self) {
        if let Role::Holding(holding) = &mut self.role
            && holding.keeper.may_work(BEGINNING)
        {
            holding.resting = false;
        }
    }

    /// Whether it waits for the end of what is its own.
    pub(crate) fn waits_for_itself(&self) -> bool {
        match &self.role {
            Role::Waiting(contender) => {
                let seen = contender.waiter.seen().and_then(|lease| lease.nonce);
                contender.tries().next().is_none() && seen.is_some() && seen == self.landed
            }
            _ => false,
        }
    }

    /// It sees its own acquisition stand there, and knows it by what it has not settled.
    fn recognizes(&mut self, seen: Option<&Lease>) {
        let held_state = seen.and_then(|lease| lease.nonce);
        let own = |sent: Attempt| match sent.write {
            Write::Acquire { nonce, .. } => held_state == Some(nonce),
            Write::Renew { .. } | Write::Release { .. } => false,
        };
        if self.knowledge == Knowledge::Lease && self.unsettled().any(own) {
            self.landed = self.landed.filter(|landed| held_state != Some(*landed));
        }
    }

    /// What is seen now may tell what became of the try that lost its race.
    fn settle(&mut self, context: StepContext<'_>) -> Result<Move, Violation> {
        if let Role::Waiting(contender) = &self.role {
            let seen = contender.waiter.seen().copied();
            self.recognizes(seen.as_ref());
        }
        let Role::Waiting(contender) = &mut self.role else {
            return Ok(Move::Nothing);
        };
        let Some(steps) = &mut contender.contended else {
            return Ok(Move::Nothing);
        };
        let seen = contender.waiter.seen().copied();
        match steps.outcome(seen.as_ref()) {
            WriteOutcome::Unknown => Ok(Move::Nothing),
            WriteOutcome::Failed => {
                contender.contended = None;
                Ok(Move::Nothing)
            }
            WriteOutcome::Landed | WriteOutcome::Ended => {
                let step = match steps.is_in_doubt() {
                    true => Step::Read,
                    false => steps.read(seen.as_ref(), context.nonce, context.clocks),
                };
                contender.running = contender.contended.take();
                self.takes(step, seen.as_ref(), context)
            }
        }
    }

    /// Takes the step that its change says, on what was just seen.
    fn takes(
        &mut self,
        step: Step,
        seen: Option<&Lease>,
        context: StepContext<'_>,
    ) -> Result<Move, Violation> {
        let StepContext {
            clocks, setting, ..
        } = context;
        match step {
            Step::Read => {}
            Step::Send(attempt) => {
                let ended = attempt.on.and_then(|on| on.ended);
                if ended.is_some() && ended == self.landed {
                    return Err(Violation::Repeated);
                }
                return Ok(Move::Write(attempt));
            }
            Step::Done(Finished::AlreadyHeld) if self.is_waiting() => {
                self.holds(clocks.boot, seen, setting.terms);
            }
            Step::Done(Finished::Landed { write, deadline }) => match write {
                Write::Release { .. } => self.becomes(Role::Idle),
                Write::Acquire { .. } | Write::Renew { .. } => {
                    self.holds(deadline, seen, setting.terms);
                    if self.keeper().is_some_and(|keeper| is_stale(keeper, clocks)) {
                        return Err(Violation::StaleSuccess);
                    }
                }
            },
            // An administrator may have looked long ago, and begins no work under what is a hold already.
            Step::Done(Finished::AlreadyFree | Finished::AlreadyHeld)
            | Step::Ended
            | Step::Altered => self.becomes(Role::Idle),
            Step::Refused(refusal) => match &mut self.role {
                Role::Waiting(contender) if can_end(refusal) => {
                    contender.running = None;
                    contender.waiter.read(seen, clocks.boot);
                    return self.settle(context);
                }
                _ => self.becomes(Role::Idle),
            },
        }
        Ok(Move::Nothing)
    }

    /// It holds `lease` until `deadline`.
    fn holds(&mut self, deadline: BootInstant, lease: Option<&Lease>, terms: Terms) {
        let keeper = lease.and_then(|lease| Keeper::new(self.caller, terms, lease, deadline));
        self.becomes(keeper.map_or(Role::Idle, |keeper| {
            Role::Holding(Holding {
                keeper,
                resting: false,
                runaway: false,
            })
        }));
    }
}

impl Holding {
    fn run(&mut self, busy: bool, clocks: Clocks) -> Result<Move, Violation> {
        let in_doubt = self.keeper.is_in_doubt();
        match self.keeper.due(clocks) {
            KeeperAction::Send(sent) => Ok(Move::Write(Attempt {
                write: sent.write,
                on: Some(sent.on),
                at: sent.at,
            })),
            KeeperAction::Read => Ok(Move::Read),
            KeeperAction::Check => Ok(Move::Check),
            KeeperAction::Wait(until) => {
                self.runaway |= clocks.boot > self.keeper.deadline();
                match in_doubt && !busy && until > clocks.boot.plus(CHECK_PAUSE) {
                    true => Err(Violation::CheckDelayed),
                    false => Ok(Move::Nothing),
                }
            }
            KeeperAction::Lost(_) => {
                self.runaway = false;
                Ok(Move::Nothing)
            }
        }
    }
}

/// Longer than any lease that is no hold.
const LONG_AGO: u32 = 100_000;

/// Less than a third of the duration is left. A hold has no end.
fn is_stale(keeper: &Keeper, clocks: Clocks) -> bool {
    let lease = keeper.held();
    let is_hold = lease.holder.is_some_and(|holder| holder.admin);
    let left = keeper.deadline().since(clocks.boot).as_micros();
    !is_hold && left.saturating_mul(3) < Span::seconds(lease.duration).as_micros()
}

/// Whether passing time, or the holder, can end the refusal.
fn can_end(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Held
            | Refusal::HeldByCaller
            | Refusal::Expired
            | Refusal::AdminHold
            | Refusal::Deleting
    )
}
