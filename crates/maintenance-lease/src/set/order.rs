//! The order in which the locks of a set are acquired and released: pure steps.
//!
//! A place is an index in the order of the nodes' names. A caller that waits for a place holds no lock
//! after it. Callers whose sets overlap therefore never wait in a circle: one of them always continues.

use crate::bugs::{self, Bug};

/// How many are tried in parallel after a conflict with another caller.
const CHUNK: usize = 64;

/// What to do about locks that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OnConflict {
    /// Keep the locks that succeed.
    Partial,
    /// All or none, without waiting for holders.
    AtOnce,
    /// All or none. Wait for holders.
    Waiting,
}

/// Why a lock could not be acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Obstacle {
    /// Another caller acquired it a moment ago and may release it soon.
    Conflict,
    /// The wait is too long to hold other locks meanwhile.
    LongHold,
    /// Retrying does not help.
    Permanent,
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Begun,
    /// All that were tried were acquired. If partial: those that could be.
    Acquired,
    /// The first place that was refused. Some places after it may have been acquired.
    Refused(usize, Obstacle),
    /// The release is done.
    Released,
    /// The watched lock is free.
    Free,
    /// Every lock is still held.
    Checked,
    /// Interrupted, or a lock was lost or could not be released.
    Stopped,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Try the places from the first up to, not including, the second in parallel.
    Acquire(usize, usize),
    /// Wait for this place and acquire it. Locks before it are renewed meanwhile.
    Await(usize),
    /// Release this place and all after it.
    Release(usize),
    /// Wait until this place is free. No lock is held meanwhile.
    Watch(usize),
    /// Check that every lock is still held.
    Check,
    /// All are held. If partial: those that could be acquired.
    Done,
    /// No lock is held.
    Failed,
}

/// The progress of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    manner: OnConflict,
    all: usize,
    /// Every place before this one is held.
    held: usize,
    /// How many are tried next, in parallel.
    width: usize,
    /// The action under way, or the one that follows a release.
    next: Action,
}

impl Order {
    /// A set of so many locks.
    pub(crate) const fn new(manner: OnConflict, all: usize) -> Self {
        let width = match manner {
            OnConflict::Partial => all,
            // Callers that start with the same node conflict here, before they hold anything.
            OnConflict::AtOnce | OnConflict::Waiting => 1,
        };
        Self {
            manner,
            all,
            held: 0,
            width,
            next: Action::Done,
        }
    }

    /// What is to be done after `event`.
    pub(crate) fn step(&mut self, event: Event) -> Action {
        match event {
            Event::Begun => self.go_on(),
            Event::Acquired => {
                match self.next {
                    Action::Acquire(0, _) => self.width = self.all,
                    Action::Await(_) => self.width = CHUNK,
                    _ => {}
                }
                self.held = match self.next {
                    Action::Acquire(_, to) => to,
                    Action::Await(at) => at + 1,
                    _ => self.held,
                };
                self.go_on()
            }
            Event::Refused(at, Obstacle::Conflict) if at > 0 => {
                self.held = at;
                self.next = Action::Await(at);
                if bugs::active(Bug::SetOrderNotKept) {
                    return self.next;
                }
                Action::Release(at)
            }
            Event::Refused(at, Obstacle::LongHold) => self.release_all(Action::Watch(at)),
            Event::Refused(_, Obstacle::Permanent) if bugs::active(Bug::PartialSetKept) => {
                Action::Failed
            }
            // A caller that holds nothing blocks nobody, so no other caller releases its locks for it.
            Event::Refused(_, Obstacle::Conflict | Obstacle::Permanent) | Event::Stopped => {
                self.release_all(Action::Failed)
            }
            Event::Released => self.next,
            Event::Free => self.go_on(),
            Event::Checked => Action::Done,
        }
    }

    fn release_all(&mut self, next: Action) -> Action {
        self.held = 0;
        self.next = next;
        Action::Release(0)
    }

    fn go_on(&mut self) -> Action {
        self.next = match self.manner {
            _ if self.held >= self.all => Action::Check,
            OnConflict::Waiting => Action::Await(self.held),
            OnConflict::Partial | OnConflict::AtOnce => {
                let to = self.held.saturating_add(self.width).min(self.all);
                Action::Acquire(self.held, to)
            }
        };
        self.next
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    #[test]
    fn free_nodes_are_tried_in_parallel_after_the_first() {
        let mut order = Order::new(OnConflict::AtOnce, 500);
        assert_eq!(order.step(Event::Begun), Action::Acquire(0, 1));
        assert_eq!(order.step(Event::Acquired), Action::Acquire(1, 500));
        assert_eq!(order.step(Event::Acquired), Action::Check);
        assert_eq!(order.step(Event::Checked), Action::Done);
        let mut partial = Order::new(OnConflict::Partial, 500);
        assert_eq!(partial.step(Event::Begun), Action::Acquire(0, 500));
    }

    #[test]
    fn a_caller_that_meets_another_keeps_only_earlier_nodes() {
        let mut order = Order::new(OnConflict::AtOnce, 500);
        order.step(Event::Begun);
        order.step(Event::Acquired);
        let lacks = Event::Refused(200, Obstacle::Conflict);
        assert_eq!(order.step(lacks), Action::Release(200));
        assert_eq!(order.step(Event::Released), Action::Await(200));
        assert_eq!(order.step(Event::Acquired), Action::Acquire(201, 265));
        assert_eq!(order.step(Event::Acquired), Action::Acquire(265, 329));
    }

    #[test]
    fn a_caller_without_the_first_node_stops_at_once() {
        let mut order = Order::new(OnConflict::AtOnce, 2);
        order.step(Event::Begun);
        let lacks = Event::Refused(0, Obstacle::Conflict);
        assert_eq!(order.step(lacks), Action::Release(0));
        assert_eq!(order.step(Event::Released), Action::Failed);
    }

    #[test]
    fn behind_a_hold_nothing_is_held() {
        let mut order = Order::new(OnConflict::Waiting, 3);
        assert_eq!(order.step(Event::Begun), Action::Await(0));
        assert_eq!(order.step(Event::Acquired), Action::Await(1));
        let lacks = Event::Refused(1, Obstacle::LongHold);
        assert_eq!(order.step(lacks), Action::Release(0));
        assert_eq!(order.step(Event::Released), Action::Watch(1));
        assert_eq!(order.step(Event::Free), Action::Await(0));
    }

    /// One of several callers, in a world of few nodes.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Caller {
        nodes: Vec<usize>,
        order: Order,
        action: Action,
        /// Which places are being tried.
        tried: BTreeSet<usize>,
        /// The first of them that could not be had.
        lacks: Option<usize>,
    }

    impl Caller {
        fn new(manner: OnConflict, nodes: &[usize]) -> Self {
            let mut caller = Self {
                nodes: nodes.to_vec(),
                order: Order::new(manner, nodes.len()),
                action: Action::Done,
                tried: BTreeSet::new(),
                lacks: None,
            };
            caller.step(Event::Begun);
            caller
        }

        fn step(&mut self, event: Event) {
            self.action = self.order.step(event);
            if let Action::Acquire(from, to) = self.action {
                self.tried = (from..to).collect();
            }
        }

        /// Tries one place: it is got, or somebody has it.
        fn tries(&mut self, at: usize, is_got: bool) {
            self.tried.remove(&at);
            if !is_got {
                self.lacks = Some(self.lacks.map_or(at, |lacks| lacks.min(at)));
            }
            if self.tried.is_empty() {
                let lacks = self.lacks.take();
                self.step(
                    lacks.map_or(Event::Acquired, |at| Event::Refused(at, Obstacle::Conflict)),
                );
            }
        }
    }

    /// The callers, and who holds each node.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct World {
        callers: Vec<Caller>,
        holders: Vec<Option<usize>>,
    }

    impl World {
        /// Lets a caller take one step, in each way in which it can.
        fn moves(&self, who: usize) -> Vec<Self> {
            let caller = &self.callers[who];
            let tries = |at: usize| {
                let mut after = self.clone();
                let holder = &mut after.holders[caller.nodes[at]];
                let is_got = holder.is_none();
                holder.get_or_insert(who);
                after.callers[who].tries(at, is_got);
                after
            };
            let steps = |event: Event| {
                let mut after = self.clone();
                after.callers[who].step(event);
                after
            };
            match caller.action {
                Action::Acquire(..) => caller.tried.iter().map(|&at| tries(at)).collect(),
                Action::Await(at) if self.holders[caller.nodes[at]].is_some() => Vec::new(),
                Action::Await(at) => {
                    let mut after = steps(Event::Acquired);
                    after.holders[caller.nodes[at]] = Some(who);
                    vec![after]
                }
                Action::Release(from) => {
                    let mut after = steps(Event::Released);
                    for &node in &caller.nodes[from..] {
                        let holder = &mut after.holders[node];
                        *holder = holder.filter(|&holder| holder != who);
                    }
                    vec![after]
                }
                Action::Check => vec![steps(Event::Checked)],
                Action::Watch(_) | Action::Done | Action::Failed => Vec::new(),
            }
        }

        fn holds(&self, who: usize, node: usize) -> bool {
            self.holders[node] == Some(who)
        }
    }

    /// Explores every order of events. A caller fails only if it lacks its first node.
    fn explore(callers: &[Caller]) {
        let mut seen = HashSet::new();
        let mut open = vec![World {
            callers: callers.to_vec(),
            holders: vec![None; 4],
        }];
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            for (who, caller) in world.callers.iter().enumerate() {
                let is_held = |&node: &usize| world.holds(who, node);
                match caller.action {
                    Action::Await(at) => assert!(
                        !caller.nodes[at..].iter().any(is_held),
                        "it waits for one and holds another after it: {world:?}"
                    ),
                    Action::Failed => assert!(!caller.nodes.iter().any(is_held), "{world:?}"),
                    Action::Done => assert!(caller.nodes.iter().all(is_held), "{world:?}"),
                    _ => {}
                }
            }
            let all = 0..world.callers.len();
            let next: Vec<World> = all.flat_map(|who| world.moves(who)).collect();
            let is_done = |caller: &Caller| caller.action == Action::Done;
            assert!(
                !next.is_empty() || world.callers.iter().any(is_done),
                "nobody gets on: {world:?}"
            );
            open.extend(next);
        }
    }

    #[test]
    fn of_callers_whose_sets_overlap_one_gets_all() {
        let sets: [&[usize]; 5] = [&[0, 1, 2, 3], &[1, 2, 3], &[0, 2, 3], &[2, 3], &[0, 3]];
        let manners = [OnConflict::AtOnce, OnConflict::Waiting];
        for (one, other) in sets.iter().flat_map(|one| sets.map(|other| (one, other))) {
            for manner in manners {
                for others in manners {
                    explore(&[Caller::new(manner, one), Caller::new(others, other)]);
                }
            }
        }
        explore(&[
            Caller::new(OnConflict::AtOnce, &[0, 1, 3]),
            Caller::new(OnConflict::AtOnce, &[1, 2, 3]),
            Caller::new(OnConflict::Waiting, &[0, 2, 3]),
        ]);
    }
}
