//! Every reachable state of small worlds.

use std::env;

use maintenance_lease::protocol::{SKEW_BUDGET, Span};

use crate::bounds::{
    BREAKS, Bounds, COMMANDS, CONTENDERS, DELETIONS, ELECTION, GUARANTEE, HALTS, OVERTAKING,
};
use crate::explore::{explore, story};

/// Set where there is time and memory for larger worlds.
const LARGE: &str = "MODEL_LARGE";

const LARGER: [(&str, Bounds); 5] = [
    (
        "finer time",
        Bounds {
            tick: 1,
            duration: 3,
            stop: 1,
            contenders: 2,
            ..CONTENDERS
        },
    ),
    (
        "slow answers and old news",
        Bounds {
            slow: true,
            events: 2,
            contenders: 2,
            ..CONTENDERS
        },
    ),
    (
        "three contenders and another tool",
        Bounds {
            touches: true,
            ..CONTENDERS
        },
    ),
    (
        "halts and overtaking",
        Bounds {
            halts: 2,
            in_flight: 2,
            ..HALTS
        },
    ),
    ("an administrator and two users", COMMANDS),
];

fn holds_in(name: &str, bounds: Bounds) {
    let explored = explore(name, bounds);
    if let Some((property, path)) = explored.failures.first() {
        panic!("{name}: not so: {property}\n{}", story(&bounds, path));
    }
    assert_eq!(explored.impossible, [""; 0], "{name}: never seen");
    assert!(
        explored.states > 1_000,
        "{name}: too small to tell anything"
    );
}

#[test]
fn no_two_believe_that_they_hold_the_node_and_who_waits_gets_in() {
    assert_eq!(Span::seconds(CONTENDERS.apart), SKEW_BUDGET);
    holds_in("three contenders", CONTENDERS);
    let progress = Bounds {
        contenders: 2,
        duration: 9,
        progress: true,
        ..CONTENDERS
    };
    holds_in("progress", progress);
}

#[test]
fn requests_that_overtake_each_other_make_no_second_holder() {
    holds_in("overtaking", OVERTAKING);
}

#[test]
fn after_a_break_only_whom_it_hit_may_act_on() {
    holds_in("breaks", BREAKS);
    holds_in("deletions", DELETIONS);
}

#[test]
fn a_machine_that_stood_still_lets_no_work_go_on_that_is_not_its_own() {
    holds_in("halts", HALTS);
}

#[test]
fn an_election_needs_no_clock_but_the_contenders_own() {
    holds_in("election", ELECTION);
}

/// `cargo xtask model` asks for these: they take minutes, and gigabytes.
#[test]
fn larger_worlds_keep_the_guarantee() {
    if env::var(LARGE).is_err() {
        return;
    }
    for (name, bounds) in LARGER {
        holds_in(name, bounds);
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "how it happens is the point")]
fn clocks_further_apart_than_the_budget_make_two_holders() {
    let bounds = Bounds {
        apart: CONTENDERS.apart + 1,
        symmetry: false,
        ..CONTENDERS
    };
    let explored = explore("clocks too far apart", bounds);
    let (property, path) = explored.failures.first().expect("an overlap");
    assert_eq!(*property, GUARANTEE);
    assert_eq!(path.last_state().world.believers().count(), 2);
    eprintln!(
        "two hold at once, with clocks 4 s apart:\n{}",
        story(&bounds, path)
    );
}
