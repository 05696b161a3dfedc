//! Small worlds: three clients, one Lease, and time in ticks.

use maintenance_lease::protocol::{Expiry, Now, Span, Terms, Verb};
use stateright::{Model, Property};

use crate::canonical::Horizon;
use crate::client::{Client, Knowledge, Role, Violation};
use crate::progress::{Recovery, takeover_bound};
use crate::world::{CLIENTS, Setting, World, is_lease_of, landed};

pub(crate) const GUARANTEE: &str = "no two believe that they hold the node";

/// The client that holds and breaks, in worlds that have one; the others acquire.
const ADMINISTRATOR: usize = 2;

/// The bounds of a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    /// How long a tick is, in seconds.
    pub(crate) tick: u32,
    /// How far apart two estimates of the server's time may be, in seconds.
    pub(crate) apart: u32,
    /// The length of every lease, in seconds.
    pub(crate) duration: u32,
    /// How long before the deadline work is asked to stop, in seconds.
    pub(crate) stop: u32,
    pub(crate) expiry: Expiry,
    /// Clients enter what is theirs already, left over from before.
    pub(crate) reentry: bool,
    /// How many requests may be under way at once.
    pub(crate) in_flight: usize,
    /// How many events a watch may show, the newest and older ones.
    pub(crate) events: usize,
    /// Answers take time, too.
    pub(crate) slow: bool,
    /// How many locks are broken at most.
    pub(crate) breaks: u8,
    /// They are broken by deleting the Node.
    pub(crate) deletions: bool,
    /// They are broken by an administrator, the last of the clients: a lease forced, a hold taken over.
    pub(crate) administrator: bool,
    /// Another tool writes to the Lease.
    pub(crate) touches: bool,
    /// How often machines stand still at most, with their boot clocks.
    pub(crate) halts: u8,
    /// How many answers are another's than the server's at most: a page in its place, or a refusal of what
    /// was carried out.
    pub(crate) foreign: u8,
    /// A policy of the cluster shortens every lease to this.
    pub(crate) longest: Option<u32>,
    /// What must come to pass once faults have ended is looked at, from every state.
    pub(crate) progress: bool,
    /// Clients that are alike change places. Traces are easier to read where they don't.
    pub(crate) symmetry: bool,
    /// How many clients want the Lease; an administrator is none of them.
    pub(crate) contenders: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) recovery: Option<Recovery>,
}

/// What happens next. Who is never scheduled is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    /// A client begins to wait for the Lease.
    Want(usize),
    /// A client stops waiting.
    GiveUp(usize),
    /// A client is scheduled, and does what is due.
    Run(usize, Clock),
    /// A holder's work is over.
    Release(usize),
    /// The work of a client that lost its lease is over.
    Stop(usize),
    /// An administrator looks, and agrees to break what is there.
    Confirm,
    Command(Intent),
    /// A request arrives at the server.
    Serve(usize),
    /// A request arrives, unless it was served before, and its answer arrives.
    Answer(usize, Clock),
    /// A request arrives, and its answer is lost.
    LoseAnswer(usize),
    /// A client's request takes too long for it. Where it has not arrived, it may do so later.
    TimeOut(usize),
    /// A watch shows an event, the newest or an older one.
    Watch(usize, usize, Clock),
    DeleteNode,
    Touch,
    Halt(usize),
    Resume(usize),
    /// A machine goes on, and the answer to a request of before is there.
    ResumeTo(usize),
    /// A client is scheduled, and where it reads, it gets a page that is not the server's.
    Misread(usize, Clock),
    /// A page that is not the server's comes in place of an answer.
    AnswerFalsely(usize),
    /// A request is carried out, sent again by something on the way, and refused.
    ServeTwice(usize),
    /// All faults end, and the holder is gone.
    Desert,
    /// All faults end, and the holder alone goes on.
    LeaveAlone,
    /// A tick in which everything works.
    GoOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intent {
    Hold,
    Unhold,
    ForceRelease,
    TakeOver,
}

/// The two estimates of the server's time that are furthest apart. A client may have the one now
/// and the other later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Clock {
    Behind,
    Ahead,
}

const CLOCKS: [Clock; 2] = [Clock::Behind, Clock::Ahead];

/// Three who wait, hold and give back, and a network that loses and delays.
///
/// A tick is as long as clocks may be apart, and as the margin for it: what happens in between
/// differs in nothing but that.
pub(crate) const CONTENDERS: Bounds = Bounds {
    tick: 3,
    apart: 3,
    duration: 6,
    stop: 0,
    expiry: Expiry::ServerTime,
    reentry: false,
    in_flight: 1,
    events: 1,
    slow: false,
    breaks: 0,
    deletions: false,
    administrator: false,
    touches: false,
    halts: 0,
    foreign: 0,
    longest: None,
    progress: false,
    symmetry: true,
    contenders: CLIENTS,
};

/// Two of them, and requests that overtake each other.
pub(crate) const OVERTAKING: Bounds = Bounds {
    in_flight: 2,
    contenders: 2,
    ..CONTENDERS
};

/// Two of them, and an administrator. Their clocks agree, to keep it small.
pub(crate) const COMMANDS: Bounds = Bounds {
    apart: 0,
    breaks: 1,
    administrator: true,
    contenders: 2,
    ..CONTENDERS
};

/// Two of them, and a Node that is deleted and made again.
pub(crate) const DELETIONS: Bounds = Bounds {
    breaks: 1,
    deletions: true,
    contenders: 2,
    ..CONTENDERS
};

/// One of them, an administrator, and a Node that is deleted and made again.
pub(crate) const BREAKS: Bounds = Bounds {
    duration: 3,
    breaks: 1,
    deletions: true,
    administrator: true,
    contenders: 1,
    ..CONTENDERS
};

/// Two of them, on machines one of which stands still for a while.
pub(crate) const HALTS: Bounds = Bounds {
    halts: 1,
    contenders: 2,
    ..CONTENDERS
};

/// Two of them, a machine that stands still, and an answer that is not the server's.
pub(crate) const FOREIGN: Bounds = Bounds {
    duration: 3,
    foreign: 1,
    ..HALTS
};

/// Two of them, which may enter again what they left behind. A client may do so repeatedly, with its
/// clock first ahead and then behind. That lengthens a lease by a second at times, because the end of a
/// lease never moves back. A policy limits that.
pub(crate) const REENTRY: Bounds = Bounds {
    reentry: true,
    duration: 3,
    longest: Some(3 + CONTENDERS.apart),
    contenders: 2,
    ..CONTENDERS
};

/// Everything at once: clocks apart by the whole budget, a machine that stands still, requests that
/// arrive late, answers that are lost, and a lock that goes with its Node.
pub(crate) const COMBINED: Bounds = Bounds {
    duration: 3,
    breaks: 1,
    deletions: true,
    halts: 1,
    contenders: 2,
    ..CONTENDERS
};

/// Two of them who elect a leader, with any clocks.
pub(crate) const ELECTION: Bounds = Bounds {
    expiry: Expiry::OwnEyes,
    contenders: 2,
    ..CONTENDERS
};

/// The same on machines one of which stands still for a while.
pub(crate) const ELECTION_HALTS: Bounds = Bounds {
    halts: 1,
    ..ELECTION
};

impl Bounds {
    /// The same world, where all clocks agree. It has far fewer states.
    pub(crate) const fn with_equal_clocks(self) -> Self {
        Self { apart: 0, ..self }
    }

    fn horizon(&self) -> Horizon {
        Horizon {
            longest: self.longest.unwrap_or(u32::MAX),
            slow: self.slow,
            breaks: self.breaks > 0,
            deletions: self.deletions,
            events: self.events,
            alike: if self.symmetry { self.contenders } else { 1 },
        }
    }

    /// The longest duration that a lease can have: a renewal by a clock that is behind keeps the
    /// end that one ahead wrote.
    fn longest(&self) -> Span {
        Span::seconds(self.duration + self.apart)
    }

    fn tick(&self) -> Span {
        Span::seconds(self.tick)
    }

    fn setting(&self) -> Setting {
        Setting {
            terms: Terms::new(self.duration, Span::seconds(self.stop)).until(self.expiry),
            expiry: self.expiry,
            reentry: self.reentry,
            slow: self.slow,
        }
    }

    fn server(&self, world: &World, clock: Clock) -> Now {
        let error = match clock {
            Clock::Behind => Span::ZERO,
            Clock::Ahead => Span::seconds(self.apart),
        };
        world.estimate(error, error)
    }

    fn takeover_bound(&self) -> u32 {
        takeover_bound(self.longest(), Span::seconds(self.apart), self.tick())
    }

    /// For how long a holder is watched that is left alone.
    fn kept_for(&self) -> u32 {
        2 * self.duration / self.tick + 2
    }

    fn client_actions(&self, world: &World, who: usize, actions: &mut Vec<Action>) {
        let client = &world.clients[who];
        if client.halted {
            actions.push(Action::Resume(who));
            return;
        }
        let may_halt = match &client.role {
            Role::Idle => false,
            Role::Waiting(contender) => contender.running.is_some(),
            Role::Holding(_) | Role::Changing(_) => true,
        };
        if world.halts > 0 && may_halt {
            actions.push(Action::Halt(who));
        }
        let may_want = who < self.contenders;
        match &client.role {
            Role::Idle if may_want => actions.push(Action::Want(who)),
            Role::Idle => {}
            Role::Waiting(_) => {
                actions.push(Action::GiveUp(who));
                actions.extend(CLOCKS.map(|clock| Action::Run(who, clock)));
            }
            Role::Holding(holding) => {
                let is_hold = holding
                    .keeper
                    .held()
                    .holder
                    .is_some_and(|holder| holder.admin);
                if holding.keeper.loss().is_some() {
                    actions.push(Action::Stop(who));
                } else if !is_hold {
                    actions.push(Action::Release(who));
                }
                // A hold knows no time, but that a check is due at once.
                if !is_hold || holding.keeper.is_in_doubt() {
                    actions.extend(CLOCKS.map(|clock| Action::Run(who, clock)));
                }
            }
            Role::Changing(_) => {
                actions.push(Action::GiveUp(who));
                if !world.is_busy(who) {
                    actions.push(Action::Run(who, Clock::Behind));
                }
            }
        }
        if world.foreign > 0 && !self.slow {
            actions.push(Action::Misread(who, Clock::Behind));
        }
        for event in 0..self.events {
            if world.store.events[event].is_some() {
                match &client.role {
                    Role::Waiting(_) => actions.push(Action::Watch(who, event, Clock::Behind)),
                    Role::Holding(_) => {
                        actions.extend(CLOCKS.map(|clock| Action::Watch(who, event, clock)));
                    }
                    Role::Idle | Role::Changing(_) => {}
                }
            }
        }
        if world.is_busy(who) {
            actions.push(Action::TimeOut(who));
        }
    }

    fn request_actions(&self, world: &World, index: usize, actions: &mut Vec<Action>) {
        let request = &world.requests[index];
        let holds = matches!(world.clients[request.who].role, Role::Holding(_));
        if request.answer.is_none() && (self.slow || !request.awaited) {
            actions.push(Action::Serve(index));
        }
        let halted = world.clients[request.who].halted;
        if request.awaited && halted && (!self.slow || request.answer.is_some()) {
            actions.push(Action::ResumeTo(index));
        }
        let hears = request.awaited && !halted;
        if hears && (!self.slow || request.answer.is_some()) {
            actions.push(Action::Answer(index, Clock::Behind));
            if holds {
                actions.push(Action::Answer(index, Clock::Ahead));
            }
        }
        if hears && !self.slow && request.answer.is_none() {
            actions.push(Action::LoseAnswer(index));
        }
        if hears && world.foreign > 0 {
            actions.push(Action::AnswerFalsely(index));
            if world.may_be_carried_out(index) {
                actions.push(Action::ServeTwice(index));
            }
        }
    }

    /// What an administrator does. Holds know no time, so that the one clock is
    /// as good as the other.
    fn administration(&self, world: &World, actions: &mut Vec<Action>) {
        let may_break = world.breaks > 0;
        if may_break && world.store.lease.is_some() {
            actions.push(Action::Confirm);
        }
        if world.is_busy(ADMINISTRATOR) {
            return;
        }
        let intents: &[Intent] = match world.clients[ADMINISTRATOR].role {
            Role::Idle if may_break => &[Intent::Hold, Intent::TakeOver, Intent::ForceRelease],
            Role::Idle => &[Intent::Hold],
            _ => &[Intent::Unhold],
        };
        actions.extend(intents.iter().map(|intent| Action::Command(*intent)));
    }

    fn apply(&self, world: &mut World, action: Action) -> Option<()> {
        let setting = self.setting();
        let now = |world: &World, clock| self.server(world, clock);
        match action {
            Action::Tick => world.tick(self.tick()),
            Action::Want(who) => {
                let server = now(world, Clock::Behind);
                world.want(who, server, &setting);
            }
            Action::GiveUp(who) => world.give_up(who),
            Action::Run(who, clock) => {
                let server = now(world, clock);
                world.run(who, server, &setting);
            }
            Action::Release(who) => world.release(who),
            Action::Stop(who) => world.stop(who),
            Action::Confirm => {
                let seen = world.store.lease;
                world.confirm(seen.as_ref());
            }
            Action::Command(intent) => {
                let nonce = world.store.fresh_id();
                let verb = match intent {
                    Intent::Hold | Intent::TakeOver => Verb::Hold {
                        nonce,
                        take_over: intent == Intent::TakeOver,
                    },
                    Intent::Unhold => Verb::Unhold { another: false },
                    Intent::ForceRelease => Verb::ForceRelease,
                };
                let (seen, server) = (world.store.lease, now(world, Clock::Ahead));
                world.command(ADMINISTRATOR, verb, seen.as_ref(), server, &setting);
            }
            Action::Serve(index) => world.serve(index),
            Action::Answer(index, clock) => {
                let server = now(world, clock);
                world.serve_once(index);
                world.answer(index, server, &setting);
            }
            Action::LoseAnswer(index) => {
                let who = world.requests[index].who;
                let server = now(world, Clock::Behind);
                world.serve(index);
                world.time_out(who, server);
            }
            Action::TimeOut(who) => {
                let server = now(world, Clock::Behind);
                world.time_out(who, server);
            }
            Action::Watch(who, event, clock) => {
                let server = now(world, clock);
                world.watch(who, event, server, &setting);
            }
            Action::DeleteNode => world.delete(),
            Action::Touch => world.store.touch(),
            Action::Halt(who) => world.halt(who),
            Action::Resume(who) => world.resume(who),
            Action::ResumeTo(index) => {
                let server = now(world, Clock::Behind);
                world.serve_once(index);
                world.resume_to(index, server, &setting);
            }
            Action::Misread(who, clock) => {
                let server = now(world, clock);
                if !world.misread(who, server, &setting) {
                    return None;
                }
            }
            Action::AnswerFalsely(index) => {
                let server = now(world, Clock::Behind);
                world.answer_falsely(index, server);
            }
            Action::ServeTwice(index) => world.serve_twice(index),
            Action::Desert | Action::LeaveAlone | Action::GoOn => return None,
        }
        Some(())
    }

    /// The one way on after faults have ended.
    fn recovery(&self, world: &mut World, recovery: Recovery) -> Recovery {
        let server = self.server(world, Clock::Behind);
        world.tick(self.tick());
        world.go_on(server, &self.setting());
        let held = world.holder().is_some();
        match recovery {
            Recovery::Vacant(_) if held => Recovery::Done,
            Recovery::Vacant(ticks) => Recovery::Vacant(ticks + 1),
            Recovery::Kept(ticks) if held && ticks >= self.kept_for() => Recovery::Done,
            Recovery::Kept(ticks) => Recovery::Kept(ticks + 1),
            Recovery::Done => Recovery::Done,
        }
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut world = World::new(None);
        world.store.longest = self.longest;
        world.breaks = self.breaks;
        world.halts = self.halts;
        world.foreign = self.foreign;
        vec![State {
            world: world.canonical(self.horizon()),
            recovery: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        match state.recovery {
            Some(Recovery::Done) => return,
            Some(Recovery::Vacant(_) | Recovery::Kept(_)) => {
                actions.push(Action::GoOn);
                return;
            }
            None => {}
        }
        let world = &state.world;
        actions.push(Action::Tick);
        for who in 0..CLIENTS {
            self.client_actions(world, who, actions);
        }
        for index in 0..world.requests.len() {
            self.request_actions(world, index, actions);
        }
        if self.touches && world.store.lease.is_some() {
            actions.push(Action::Touch);
        }
        if self.deletions && world.breaks > 0 && world.store.lease.is_some() {
            actions.push(Action::DeleteNode);
        }
        if self.administrator {
            self.administration(world, actions);
        }
        if self.progress {
            actions.extend([Action::Desert, Action::LeaveAlone]);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut world = state.world.clone();
        let server = self.server(&world, Clock::Behind);
        let recovery = match (action, state.recovery) {
            (Action::GoOn, Some(recovery)) => Some(self.recovery(&mut world, recovery)),
            (Action::Desert, _) => Some(world.desert(server).then_some(Recovery::Vacant(0))?),
            (Action::LeaveAlone, _) => {
                let kept = world.leave_alone(server, Span::seconds(2 * self.tick - 1));
                Some(kept.then_some(Recovery::Kept(0))?)
            }
            _ => {
                self.apply(&mut world, action)?;
                None
            }
        };
        if recovery == Some(Recovery::Done) {
            world = World::new(None);
        }
        if world.requests.len() > self.in_flight {
            return None;
        }
        let world = world.canonical(self.horizon());
        (world != state.world || recovery != state.recovery).then_some(State { world, recovery })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::<Self>::always(GUARANTEE, |_: &Self, state: &State| {
                state.world.keeps_the_guarantee()
            }),
            Property::<Self>::always("whose lock was broken stops in time", |_, state| {
                state.world.nobody_overstays()
            }),
            Property::<Self>::always("no loss is imagined", |_, state| {
                state.world.no_loss_is_imagined()
            }),
            Property::<Self>::always("a loss is final", |_, state| {
                state.world.violation != Some(Violation::Revived)
            }),
            Property::<Self>::always("what was taken for failed never lands", |_, state| {
                state.world.violation != Some(Violation::Misjudged)
            }),
            Property::<Self>::always("what a waiter tries is allowed", |_, state| {
                state.world.violation != Some(Violation::RefusedTry)
            }),
            Property::<Self>::always("nobody works in doubt", |_, state| {
                state.world.nobody_works_in_doubt()
            }),
            Property::<Self>::always("a check that is due is sent", |_, state| {
                state.world.violation != Some(Violation::CheckDelayed)
            }),
            Property::<Self>::always("success leaves a third of the duration", |_, state| {
                state.world.violation != Some(Violation::StaleSuccess)
            }),
            Property::<Self>::always("who got in knows", |_, state| {
                state.world.violation != Some(Violation::Unrecognized)
            }),
            Property::<Self>::always("what was ended is not begun again", |_, state| {
                state.world.violation != Some(Violation::Repeated)
            }),
            Property::<Self>::always(
                "no lease is longer than the horizon",
                |bounds: &Self, state| {
                    state.world.store.lease.is_none_or(|lease| {
                        lease.holder.is_some_and(|holder| holder.admin)
                            || Span::seconds(lease.duration) <= bounds.longest()
                    })
                },
            ),
            Property::<Self>::sometimes("a holder works until the last instant", |_, state| {
                any(state, |client, _| {
                    client
                        .keeper()
                        .is_some_and(|keeper| keeper.deadline() == client.boot)
                })
            }),
            Property::<Self>::sometimes(
                "a lost answer hides that a lease was taken",
                |_, state| {
                    any(state, |client, world| {
                        client.is_waiting()
                            && client
                                .unsettled()
                                .any(|sent| landed(&sent, world.store.lease.as_ref()))
                    })
                },
            ),
            Property::<Self>::sometimes(
                "an old request takes what its client gave up",
                |_, state| {
                    any(state, |client, world| {
                        client.role == Role::Idle
                            && world
                                .store
                                .lease
                                .is_some_and(|lease| is_lease_of(&lease, client.caller.identity))
                    })
                },
            ),
        ];
        if self.progress {
            properties.extend([
                Property::<Self>::always("who waits gets in", |bounds: &Self, state: &State| {
                    !matches!(state.recovery, Some(Recovery::Vacant(ticks)) if ticks > bounds.takeover_bound())
                }),
                Property::<Self>::always("who holds and is served keeps it", |_, state: &State| {
                    !matches!(state.recovery, Some(Recovery::Kept(_))) || state.world.holder().is_some()
                }),
                Property::<Self>::sometimes("somebody gets in or keeps it", |_, state: &State| {
                    state.recovery == Some(Recovery::Done)
                }),
                Property::<Self>::sometimes("a holder is left alone", |_, state: &State| {
                    matches!(state.recovery, Some(Recovery::Kept(_)))
                }),
            ]);
        }
        if self.halts > 0 {
            properties.push(Property::<Self>::sometimes(
                "a lock is known to be one's own after a standstill",
                |_, state: &State| {
                    state.world.halts == 0
                        && any(state, |client, _| {
                            client.knowledge == Knowledge::Lease && client.works_under().is_some()
                        })
                },
            ));
        }
        if self.foreign > 0 {
            properties.push(Property::<Self>::sometimes(
                "a refusal hides that a lease was taken",
                |_, state: &State| {
                    any(state, |client, world| match &client.role {
                        Role::Waiting(contender) => contender
                            .contended
                            .and_then(|steps| steps.unsettled())
                            .is_some_and(|sent| landed(&sent, world.store.lease.as_ref())),
                        _ => false,
                    })
                },
            ));
        }
        if self.administrator {
            properties.push(Property::<Self>::sometimes(
                "an administrator holds",
                |_, state: &State| state.world.clients[ADMINISTRATOR].works_under().is_some(),
            ));
        }
        properties
    }
}

fn any(state: &State, is: impl Fn(&Client, &World) -> bool) -> bool {
    let world = &state.world;
    world.clients.iter().any(|client| is(client, world))
}
