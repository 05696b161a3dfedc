//! Every reachable state of a small world: two users and an administrator, ticks of a second,
//! leases of two.

use std::env;

use maintenance_lease::protocol::{Outcome, SKEW_BUDGET, Span, Verb, judge};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::canonical::Horizon;
use crate::client::Sent;
use crate::world::{CLIENTS, World};

const TICK: Span = Span::seconds(1);

const GUARANTEE: &str = "no two believe that they hold the node";

/// The client that holds and breaks; the others acquire.
const ADMINISTRATOR: usize = 2;

/// The variable that sets how many requests may be under way in the largest of these worlds.
const IN_FLIGHT: &str = "MODEL_IN_FLIGHT";

/// The bounds of a world.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// How far apart two estimates of the server's time may be, in seconds.
    apart: u32,
    /// The length of every lease, in seconds.
    duration: u32,
    /// How many requests may be under way at once.
    in_flight: usize,
    /// Locks are broken, too: the Node deleted, a lease forced, a hold taken over or ended.
    breaks: bool,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Tick,
    /// A client reads, decides and sends, at once: on an older read, it would send what can't land.
    Want(usize, Intent, Clock),
    /// A request arrives, and its answer, too.
    Answer(usize),
    /// A request arrives, and its answer is lost.
    LoseAnswer(usize),
    /// A client reads again, to learn what became of its write.
    Read(usize),
    DeleteNode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Intent {
    Acquire,
    Renew,
    Release,
    Hold,
    Unhold,
    ForceRelease,
    TakeOver,
}

/// The two estimates of the server's time that are furthest apart. A client may have the one now
/// and the other later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Clock {
    Behind,
    Ahead,
}

impl Bounds {
    fn horizon(self) -> Horizon {
        Horizon {
            // A renewal by a clock that is behind keeps the end that one ahead wrote.
            longest: Span::seconds(self.duration + self.apart),
            deletions: self.breaks,
        }
    }

    fn verb(self, intent: Intent, world: &mut World) -> Verb {
        match intent {
            Intent::Acquire => Verb::Acquire {
                duration: self.duration,
                nonce: world.store.fresh_id(),
                reentry: false,
                free_only: false,
            },
            Intent::Renew => Verb::Renew {
                duration: Some(self.duration),
            },
            Intent::Release => Verb::Release,
            Intent::Hold | Intent::TakeOver => Verb::Hold {
                nonce: world.store.fresh_id(),
                take_over: intent == Intent::TakeOver,
            },
            Intent::Unhold => Verb::Unhold { another: false },
            Intent::ForceRelease => Verb::ForceRelease,
        }
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(None).canonical(self.horizon())]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for who in 0..CLIENTS {
            let intents: &[Intent] = match (who, self.breaks) {
                (ADMINISTRATOR, true) => &[
                    Intent::Hold,
                    Intent::Unhold,
                    Intent::ForceRelease,
                    Intent::TakeOver,
                ],
                (ADMINISTRATOR, false) => &[Intent::Hold, Intent::Unhold],
                _ => &[Intent::Acquire, Intent::Renew, Intent::Release],
            };
            if world.in_flight.len() < self.in_flight {
                for intent in intents {
                    actions.push(Action::Want(who, *intent, Clock::Behind));
                    actions.push(Action::Want(who, *intent, Clock::Ahead));
                }
            }
            if world.clients[who].unanswered.is_some() {
                actions.push(Action::Read(who));
            }
        }
        for request in 0..world.in_flight.len() {
            actions.push(Action::Answer(request));
            actions.push(Action::LoseAnswer(request));
        }
        if self.breaks && world.store.lease.is_some() {
            actions.push(Action::DeleteNode);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Tick => next.now = next.now + TICK,
            Action::Want(who, intent, clock) => {
                let verb = self.verb(intent, &mut next);
                let seen = next.store.lease;
                let meant = seen.and_then(|lease| lease.acquisition());
                let error = match clock {
                    Clock::Behind => Span::ZERO,
                    Clock::Ahead => Span::seconds(self.apart),
                };
                let server = next.estimate(error, error);
                next.want(who, verb, seen.as_ref(), meant, server).ok()?;
            }
            Action::Answer(request) => next.deliver(request, true),
            Action::LoseAnswer(request) => next.deliver(request, false),
            Action::Read(who) => next.read(who),
            Action::DeleteNode => next.delete(),
        }
        Some(next.canonical(self.horizon()))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(GUARANTEE, |_, world: &World| world.keeps_the_guarantee()),
            Property::always(
                "no lease is longer than the horizon",
                |bounds: &Self, world: &World| {
                    world.store.lease.is_none_or(|lease| {
                        lease.holder.is_some_and(|holder| holder.admin)
                            || Span::seconds(lease.duration) <= bounds.horizon().longest
                    })
                },
            ),
            Property::sometimes(
                "a holder acts until the last instant",
                |_, world: &World| {
                    world
                        .clients
                        .iter()
                        .any(|client| client.belief == Some(world.boot()))
                },
            ),
            Property::sometimes(
                "a lost answer hides that a lease was taken",
                |_, world: &World| {
                    world.clients.iter().any(|client| {
                        client.belief.is_none()
                            && client.unanswered.is_some_and(|sent| landed(&sent, world))
                    })
                },
            ),
            Property::sometimes(
                "an old request takes what its client gave up",
                |_, world: &World| {
                    let taken = world.store.lease.and_then(|lease| lease.holder);
                    world.clients.iter().any(|client| {
                        taken.is_some_and(|holder| holder.id == client.caller.identity)
                            && client.belief.is_none()
                            && client.unanswered.is_none()
                    })
                },
            ),
            Property::sometimes("an administrator holds", |_, world: &World| {
                world.clients[ADMINISTRATOR].believes(world.boot())
            }),
        ]
    }
}

fn landed(sent: &Sent, world: &World) -> bool {
    let lease = world.store.lease.as_ref();
    judge(&sent.write, sent.on.as_ref(), lease) == Outcome::Landed
}

/// Explores all that can be reached, up to the first failure, and says how much that was.
#[expect(
    clippy::print_stderr,
    reason = "the size of the model is what its reader asks first"
)]
fn explore(bounds: Bounds) -> impl Checker<Bounds> {
    let stop = HasDiscoveries::AnyFailures;
    let checker = bounds
        .checker()
        .threads(2)
        .finish_when(stop)
        .spawn_bfs()
        .join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    eprintln!("{bounds:?}: {states} states, the furthest {depth} actions away");
    checker
}

const SMALL: Bounds = Bounds {
    apart: 3,
    duration: 2,
    in_flight: 2,
    breaks: false,
};

#[test]
fn no_two_believe_that_they_hold_the_node() {
    assert_eq!(Span::seconds(SMALL.apart), SKEW_BUDGET);
    explore(SMALL).assert_properties();
}

#[test]
fn after_a_break_only_whom_it_hit_may_act_on() {
    let bounds = Bounds {
        in_flight: env::var(IN_FLIGHT).map_or(1, |number| number.parse().expect(IN_FLIGHT)),
        breaks: true,
        ..SMALL
    };
    explore(bounds).assert_properties();
}

#[test]
fn clocks_further_apart_than_the_budget_make_two_holders() {
    let bounds = Bounds {
        apart: SMALL.apart + 1,
        ..SMALL
    };
    let found = explore(bounds).assert_any_discovery(GUARANTEE);
    assert_eq!(found.last_state().believers(), 2);
}
