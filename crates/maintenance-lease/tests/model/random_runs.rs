//! Long runs of the world at random, to the microsecond.

use maintenance_lease::protocol::{Acquisition, Id, Lease, Span, Verb};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::lost_answers::marked;
use crate::odd::{self, cases};
use crate::world::{CLIENTS, World, breaks};

/// What happens next. Those who act have eyes of their own: they decide on what they saw last.
#[derive(Clone, Debug)]
enum Step {
    Wait(Span),
    Look(usize),
    /// Asked whether to break the lock that they saw, they say yes.
    Confirm(usize),
    Want(usize, Verb, (Span, Span)),
    Deliver(Index, bool),
    /// The same write once more.
    SendAgain(usize),
    /// A read to learn what became of a write.
    Read(usize),
    /// Another tool changes a label.
    Touch,
    /// Look, want and be answered, all at once.
    Do(usize, Verb, (Span, Span)),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..CLIENTS;
    let want = || (0..CLIENTS, odd::verb(Id(0)), odd::error());
    prop_oneof![
        4 => (0..9_000_000_i64).prop_map(|micros| Step::Wait(Span::micros(micros))),
        2 => (0..9_u32).prop_map(|seconds| Step::Wait(Span::seconds(seconds))),
        3 => who.clone().prop_map(Step::Look),
        1 => who.clone().prop_map(Step::Confirm),
        3 => want().prop_map(|(who, verb, error)| Step::Want(who, verb, error)),
        4 => (any::<Index>(), any::<bool>()).prop_map(|(which, ok)| Step::Deliver(which, ok)),
        1 => who.clone().prop_map(Step::SendAgain),
        2 => who.prop_map(Step::Read),
        1 => Just(Step::Touch),
        8 => want().prop_map(|(who, verb, error)| Step::Do(who, verb, error)),
    ]
}

/// The world, and what each client last saw of it and said yes to.
struct Run {
    world: World,
    seen: [Option<Lease>; CLIENTS],
    confirmed: [Option<Acquisition>; CLIENTS],
}

impl Run {
    fn new(lease: Option<Lease>) -> Self {
        Self {
            world: World::new(lease),
            seen: [lease; CLIENTS],
            confirmed: [None; CLIENTS],
        }
    }

    fn want(&mut self, who: usize, verb: Verb, (earliest, latest): (Span, Span)) {
        let verb = marked(verb, &mut self.world.store);
        let meant = self.confirmed[who].filter(|_| breaks(verb));
        let server = self.world.estimate(earliest, latest);
        let seen = self.seen[who];
        // A refusal is as good as silence here.
        let _ = self.world.want(who, verb, seen.as_ref(), meant, server);
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Wait(span) => self.world.now = self.world.now + span,
            Step::Look(who) => self.seen[who] = self.world.store.lease,
            Step::Confirm(who) => {
                self.confirmed[who] = self.seen[who].and_then(|lease| lease.acquisition());
            }
            Step::Want(who, verb, error) => self.want(who, verb, error),
            Step::Deliver(which, answered) => {
                let requests = self.world.in_flight.len();
                if requests > 0 {
                    self.world.deliver(which.index(requests), answered);
                }
            }
            Step::SendAgain(who) => self.world.send_again(who),
            Step::Read(who) => {
                self.seen[who] = self.world.store.lease;
                self.world.read(who);
            }
            Step::Touch => self.world.store.touch(),
            Step::Do(who, verb, error) => {
                self.seen[who] = self.world.store.lease;
                let requests = self.world.in_flight.len();
                self.want(who, verb, error);
                if self.world.in_flight.len() > requests {
                    self.world.deliver(requests, true);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn no_second_holder_gets_in_without_a_confirmed_break(
        start in prop::option::of(odd::lease()),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut run = Run::new(start);
        for step in &steps {
            let before = run.world.store.lease;
            run.take(step);
            prop_assert!(
                run.world.keeps_the_guarantee(),
                "{step:?} made a second holder: {:#?}", run.world,
            );
            if let (Some(before), Some(after)) = (before, run.world.store.lease) {
                let wrapped = before.transitions == i32::MAX as u32 && after.transitions == 0;
                prop_assert!(after.transitions >= before.transitions || wrapped);
                let was_hold = before.holder.is_some_and(|holder| holder.admin);
                let is_lease = after.holder.is_some_and(|holder| !holder.admin);
                prop_assert!(!(was_hold && is_lease), "{step:?} took a hold");
            }
        }
    }
}
