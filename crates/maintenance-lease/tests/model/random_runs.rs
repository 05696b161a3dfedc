//! Long runs of the world at random, to the microsecond.

use maintenance_lease::protocol::{Expiry, Lease, Span, Terms, Verb};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::lost_answers::marked;
use crate::random_input::{self, cases};
use crate::world::{CLIENTS, Setting, World};

/// What happens next. Administrators have eyes of their own: they decide on what they saw last.
#[derive(Clone, Debug)]
enum Step {
    Wait(Span),
    /// A client begins to wait for the Lease.
    Want(usize),
    GiveUp(usize),
    /// A client is scheduled, and its estimate of the server's time errs by this.
    Run(usize, (Span, Span)),
    /// A client is scheduled, and what it sends is carried out and answered at once.
    Do(usize, (Span, Span)),
    Release(usize),
    Stop(usize),
    Look(usize),
    /// Asked whether to break the lock that was seen, somebody says yes.
    Confirm(usize),
    Command(usize, Verb, (Span, Span)),
    Serve(Index),
    Answer(Index, (Span, Span)),
    TimeOut(usize),
    Watch(usize, usize, (Span, Span)),
    /// Another tool changes a label.
    Touch,
    Halt(usize),
    Resume(usize),
    /// A machine goes on, and the answer to a request of before is there.
    ResumeTo(Index),
    /// A client is scheduled, and where it reads, it gets a page that is not the server's.
    Misread(usize, (Span, Span)),
    /// A page that is not the server's comes in place of an answer.
    AnswerFalsely(Index),
    /// A request is carried out, sent again by something on the way, and refused.
    ServeTwice(Index),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..CLIENTS;
    let breaks = random_input::verb(maintenance_lease::protocol::Id(0));
    let clock = random_input::error;
    let any = any::<Index>;
    let passing = prop_oneof![
        4 => (0..9_000_000_i64).prop_map(|micros| Step::Wait(Span::micros(micros))),
        2 => (0..9_u32).prop_map(|seconds| Step::Wait(Span::seconds(seconds))),
    ];
    let living = prop_oneof![
        3 => who().prop_map(Step::Want),
        1 => who().prop_map(Step::GiveUp),
        6 => (who(), clock()).prop_map(|(who, clock)| Step::Run(who, clock)),
        8 => (who(), clock()).prop_map(|(who, clock)| Step::Do(who, clock)),
        1 => who().prop_map(Step::Release),
        1 => who().prop_map(Step::Stop),
        1 => who().prop_map(Step::Halt),
        2 => who().prop_map(Step::Resume),
        2 => any().prop_map(Step::ResumeTo),
    ];
    let commands = prop_oneof![
        2 => who().prop_map(Step::Look),
        1 => who().prop_map(Step::Confirm),
        2 => (who(), breaks, clock()).prop_map(|(who, verb, clock)| Step::Command(who, verb, clock)),
    ];
    let network = prop_oneof![
        4 => any().prop_map(Step::Serve),
        4 => (any(), clock()).prop_map(|(which, clock)| Step::Answer(which, clock)),
        2 => who().prop_map(Step::TimeOut),
        3 => (who(), 0..2_usize, clock()).prop_map(|(who, event, clock)| Step::Watch(who, event, clock)),
        1 => Just(Step::Touch),
        1 => (who(), clock()).prop_map(|(who, clock)| Step::Misread(who, clock)),
        1 => any().prop_map(Step::AnswerFalsely),
        1 => any().prop_map(Step::ServeTwice),
    ];
    prop_oneof![3 => passing, 6 => living, 1 => commands, 4 => network]
}

/// The world, and what each client last saw of it as an administrator.
struct Run {
    world: World,
    seen: [Option<Lease>; CLIENTS],
    setting: Setting,
}

impl Run {
    fn new(lease: Option<Lease>, terms: Terms, reentry: bool) -> Self {
        Self {
            world: World::new(lease),
            seen: [lease; CLIENTS],
            setting: Setting {
                terms,
                expiry: Expiry::ServerTime,
                reentry,
                slow: true,
            },
        }
    }

    fn take(&mut self, step: &Step) {
        let world = &mut self.world;
        let now = |world: &World, (earliest, latest)| world.estimate(earliest, latest);
        let runs = |world: &World, who: usize| !world.clients[who].halted;
        match *step {
            Step::Wait(span) => world.tick(span),
            Step::Want(who) if runs(world, who) && world.is_idle(who) => {
                let server = now(world, (Span::ZERO, Span::ZERO));
                world.want(who, server, &self.setting);
            }
            Step::GiveUp(who) if runs(world, who) && world.clients[who].is_waiting() => {
                world.give_up(who);
            }
            Step::Run(who, clock) if runs(world, who) => {
                let server = now(world, clock);
                world.run(who, server, &self.setting);
            }
            Step::Do(who, clock) if runs(world, who) => {
                let server = now(world, clock);
                world.run(who, server, &self.setting);
                while let Some(request) = world.awaited(who) {
                    world.serve_once(request);
                    world.answer(request, server, &self.setting);
                }
            }
            Step::Release(who) if runs(world, who) => world.release(who),
            Step::Stop(who) if runs(world, who) && world.clients[who].is_lost() => world.stop(who),
            Step::Look(who) => self.seen[who] = world.store.lease,
            Step::Confirm(who) => world.confirm(self.seen[who].as_ref()),
            Step::Command(who, verb, clock) if runs(world, who) && world.is_idle(who) => {
                let verb = marked(verb, &mut world.store);
                let server = now(world, clock);
                let seen = self.seen[who].as_ref();
                world.command(who, verb, seen, server, &self.setting);
            }
            Step::Serve(which) => {
                if let Some(index) = index(which, world) {
                    world.serve_once(index);
                }
            }
            Step::Answer(which, clock) => {
                if let Some(index) = index(which, world)
                    && world.requests[index].answer.is_some()
                    && runs(world, world.requests[index].who)
                {
                    let server = now(world, clock);
                    world.answer(index, server, &self.setting);
                }
            }
            Step::ResumeTo(which) => {
                if let Some(index) = index(which, world)
                    && world.requests[index].answer.is_some()
                    && !runs(world, world.requests[index].who)
                {
                    let server = now(world, (Span::ZERO, Span::ZERO));
                    world.resume_to(index, server, &self.setting);
                }
            }
            Step::Misread(who, clock) if runs(world, who) => {
                let server = now(world, clock);
                world.misread(who, server, &self.setting);
            }
            Step::AnswerFalsely(which) => {
                if let Some(index) = index(which, world)
                    && world.requests[index].awaited
                    && runs(world, world.requests[index].who)
                {
                    let server = now(world, (Span::ZERO, Span::ZERO));
                    world.answer_falsely(index, server);
                }
            }
            Step::ServeTwice(which) => {
                if let Some(index) = index(which, world)
                    && world.requests[index].awaited
                    && world.may_be_carried_out(index)
                {
                    world.serve_twice(index);
                }
            }
            Step::TimeOut(who) if runs(world, who) => {
                let server = now(world, (Span::ZERO, Span::ZERO));
                world.time_out(who, server);
            }
            Step::Watch(who, event, clock) if runs(world, who) => {
                let server = now(world, clock);
                world.watch(who, event, server, &self.setting);
            }
            Step::Touch => world.store.touch(),
            Step::Halt(who) if runs(world, who) => world.halt(who),
            Step::Resume(who) if !runs(world, who) => world.resume(who),
            _ => {}
        }
    }
}

fn index(which: Index, world: &World) -> Option<usize> {
    let requests = world.requests.len();
    (requests > 0).then(|| which.index(requests))
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn no_second_holder_gets_in_without_a_confirmed_break(
        start in prop::option::of(random_input::lease()),
        (duration, stop) in (1..9_u32, 0..3_u32),
        reentry in any::<bool>(),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        let terms = Terms::new(duration, Span::seconds(stop.min(duration - 1)));
        let mut run = Run::new(start, terms, reentry);
        for step in &steps {
            let before = run.world.store.lease;
            run.take(step);
            prop_assert!(
                run.world.keeps_the_guarantee() && run.world.nobody_overstays(),
                "{step:?} made a second holder: {:#?}", run.world,
            );
            prop_assert!(run.world.nobody_works_in_doubt(), "{step:?}: {:#?}", run.world);
            prop_assert!(run.world.no_loss_is_imagined(), "{step:?}: {:#?}", run.world);
            prop_assert_eq!(run.world.violation, None, "{:?}: {:#?}", step, run.world);
            if let (Some(before), Some(after)) = (before, run.world.store.lease) {
                // What comes too late is acquired anew, maybe more than once in a step.
                let most = i32::MAX as u32;
                let wrapped = before.transitions >= most - 3 && after.transitions <= 3;
                prop_assert!(after.transitions >= before.transitions || wrapped);
                let was_hold = before.holder.is_some_and(|holder| holder.admin);
                let is_lease = after.holder.is_some_and(|holder| !holder.admin);
                prop_assert!(!(was_hold && is_lease), "{step:?} took a hold");
            }
        }
    }
}
