//! One client: the shipped [`Waiter`] until it holds, then the shipped [`Keeper`].
//!
//! This is what drives them, and no more: it says when to look, sends what they say, and hands the
//! answers on. One request is under way at a time.

use maintenance_lease::protocol::Id;
use maintenance_lease::protocol::{
    Acquisition, BootInstant, Caller, Clocks, Decision, Due, Keeper, Lease, Outcome, Span, Terms,
    Turn, Verb, Waiter, Write, deadline, decide, judge,
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
    /// The end of what its last landed write lets it believe, whether it has heard of it or not.
    pub(crate) granted: Option<BootInstant>,
    /// Its last acquisition that was broken, and until when it may act on it.
    pub(crate) broken: Option<(Acquisition, BootInstant)>,
}

/// What a client is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// It wants nothing, or has sent what an administrator told it to.
    Idle,
    Waiting(Contender),
    Holding(Holding),
    /// Its work is over, and it gives this acquisition back.
    Leaving(Acquisition),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Contender {
    pub(crate) waiter: Waiter,
    /// An acquisition that was sent and whose fate is unknown.
    pub(crate) open: Option<Sent>,
    /// Its machine stood still since it sent that.
    pub(crate) jumped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) keeper: Keeper,
    /// The machine stood still, and the work rests until a check has gone well.
    pub(crate) resting: bool,
    /// The keeper was asked after the deadline, and did not end the work.
    pub(crate) runaway: bool,
}

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) write: Write,
    /// What it was decided on, and is a compare-and-swap on.
    pub(crate) on: Option<Lease>,
    /// The boot clock before it was sent.
    pub(crate) at: BootInstant,
}

/// What a client does when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Nothing,
    Read,
    Write(Sent),
}

/// What a step must never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// The waiter said to try, and the decision was not to write.
    RefusedTry,
    /// A loss was declared and then taken back.
    Revived,
    /// A write was taken for failed that may still land.
    Misjudged,
}

/// Before every deadline.
const BEGINNING: BootInstant = BootInstant::from_micros(i64::MIN / 2);

impl Client {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            caller: caller(number),
            role: Role::Idle,
            boot: BootInstant::from_micros(0),
            halted: false,
            granted: None,
            broken: None,
        }
    }

    /// Whether a Lease that `holder` holds is this client's own.
    pub(crate) fn owns(&self, holder: Id) -> bool {
        [self.caller.identity, self.caller.hold_identity].contains(&holder)
    }

    /// The acquisition under which work of this client may be running: until the deadline, also
    /// where the loss was declared before, since work takes time to end.
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

    /// It is this client's turn on its machine. `busy`: its request is still under way.
    pub(crate) fn run(
        &mut self,
        clocks: Clocks,
        busy: bool,
        (setting, nonce): (&Setting, Id),
    ) -> Result<Move, Flaw> {
        match &mut self.role {
            Role::Idle => Ok(Move::Nothing),
            Role::Holding(holding) => Ok(match holding.keeper.due(clocks) {
                Due::Send(sent) => Move::Write(Sent {
                    write: sent.write,
                    on: Some(sent.on),
                    at: sent.at,
                }),
                Due::Read => Move::Read,
                Due::Wait(_) => {
                    holding.runaway |= clocks.boot > holding.keeper.deadline();
                    Move::Nothing
                }
                Due::Lost(_) => {
                    holding.runaway = false;
                    Move::Nothing
                }
            }),
            _ if busy => Ok(Move::Nothing),
            Role::Leaving(_) => Ok(Move::Read),
            Role::Waiting(contender) if contender.open.is_some() => Ok(Move::Read),
            Role::Waiting(contender) => match contender.waiter.turn(clocks) {
                Turn::Wait(_) => Ok(Move::Nothing),
                Turn::Read => Ok(Move::Read),
                Turn::Try => {
                    let seen = contender.waiter.seen();
                    let verb = setting.bid(nonce, seen);
                    match decide(verb, self.caller, seen, None, clocks.server) {
                        Ok(Decision::Write(write)) => {
                            let on = seen.copied();
                            contender.jumped = false;
                            Ok(Move::Write(Sent {
                                write,
                                on,
                                at: clocks.boot,
                            }))
                        }
                        // It is the own hold: nothing is to be written.
                        Ok(Decision::AlreadyHeld) => {
                            let hold = seen.copied().expect("somebody holds it");
                            self.holds(clocks.boot, &hold, setting.terms);
                            Ok(Move::Nothing)
                        }
                        _ => Err(Flaw::RefusedTry),
                    }
                }
            },
        }
    }

    /// What it read. Says what to write thereupon, if anything.
    pub(crate) fn read(
        &mut self,
        seen: Option<&Lease>,
        clocks: Clocks,
        terms: Terms,
    ) -> Option<Sent> {
        match &mut self.role {
            Role::Idle => None,
            Role::Waiting(contender) => {
                let Some(open) = contender.open else {
                    contender.waiter.read(seen, clocks.boot);
                    return None;
                };
                match (judge(&open.write, open.on.as_ref(), seen), seen) {
                    (Outcome::Unsettled, _) => return Some(open),
                    (Outcome::Landed, Some(lease)) => self.holds(open.at, lease, terms),
                    (Outcome::Landed, None) | (Outcome::Failed, _) => {
                        contender.open = None;
                        contender.waiter.read(seen, clocks.boot);
                    }
                }
                None
            }
            Role::Holding(holding) => {
                holding.keeper.read(seen, clocks);
                None
            }
            Role::Leaving(of) => {
                match decide(Verb::Release, self.caller, seen, Some(*of), clocks.server) {
                    Ok(Decision::Write(write)) => Some(Sent {
                        write,
                        on: seen.copied(),
                        at: clocks.boot,
                    }),
                    _ => {
                        self.role = Role::Idle;
                        None
                    }
                }
            }
        }
    }

    /// It could not read.
    pub(crate) fn unread(&mut self, clocks: Clocks) {
        match &mut self.role {
            Role::Waiting(contender) => contender.waiter.failed(Span::TICK, clocks.boot),
            Role::Holding(holding) => holding.keeper.unread(clocks),
            Role::Idle | Role::Leaving(_) => {}
        }
    }

    /// The server answered `sent` with the Lease as it is now.
    pub(crate) fn answered(&mut self, sent: &Sent, lease: &Lease, clocks: Clocks, terms: Terms) {
        match &mut self.role {
            Role::Holding(holding) => holding.keeper.answered(lease, clocks),
            Role::Leaving(_) => self.role = Role::Idle,
            Role::Idle | Role::Waiting(_) => {
                if let Write::Acquire { .. } | Write::Renew { .. } = sent.write {
                    self.holds(sent.at, lease, terms);
                }
            }
        }
    }

    /// The server refused it: the Lease is at another version.
    pub(crate) fn conflicted(&mut self, clocks: Clocks) {
        match &mut self.role {
            Role::Waiting(contender) if contender.open.is_none() => {
                contender.waiter.conflicted(clocks.boot);
            }
            Role::Holding(holding) => holding.keeper.conflicted(clocks),
            Role::Idle | Role::Waiting(_) | Role::Leaving(_) => {}
        }
    }

    /// No answer to `sent` came.
    pub(crate) fn unanswered(&mut self, sent: &Sent, clocks: Clocks) {
        match &mut self.role {
            Role::Waiting(contender) => contender.open = Some(*sent),
            Role::Holding(holding) => holding.keeper.unanswered(clocks),
            Role::Leaving(_) => self.role = Role::Idle,
            Role::Idle => {}
        }
    }

    /// What its watch shows.
    pub(crate) fn watched(&mut self, event: &Event, clocks: Clocks) {
        match (&mut self.role, event) {
            (Role::Waiting(contender), Event::Shown(lease)) => {
                contender.waiter.watched(Some(lease), clocks.boot);
            }
            (Role::Waiting(contender), Event::Gone(_)) => {
                contender.waiter.watched(None, clocks.boot);
            }
            (Role::Holding(holding), Event::Shown(lease)) => holding.keeper.watched(lease, clocks),
            (Role::Holding(holding), Event::Gone(last)) => holding.keeper.watched_deletion(last),
            (Role::Idle | Role::Leaving(_), _) => {}
        }
    }

    /// Its machine goes on after a standstill, which it notices before anything else runs.
    pub(crate) fn resume(&mut self) {
        self.halted = false;
        match &mut self.role {
            Role::Waiting(contender) => contender.jumped = true,
            Role::Holding(holding) => {
                holding.keeper.jumped();
                holding.resting = true;
            }
            Role::Idle | Role::Leaving(_) => {}
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

    /// It holds `lease`, by what it did at `since`.
    fn holds(&mut self, since: BootInstant, lease: &Lease, terms: Terms) {
        let jumped = matches!(&self.role, Role::Waiting(contender) if contender.jumped);
        let until = deadline(since, lease.duration);
        self.role = match Keeper::new(self.caller, terms, lease, until) {
            None => Role::Idle,
            Some(mut keeper) => {
                if jumped {
                    keeper.jumped();
                }
                Role::Holding(Holding {
                    keeper,
                    resting: jumped,
                    runaway: false,
                })
            }
        };
    }
}
