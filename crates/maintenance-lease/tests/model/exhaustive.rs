//! Every reachable state of small worlds.

use maintenance_lease::protocol::{SKEW_BUDGET, Span};

use crate::bounds::{
    BREAKS, Bounds, COMBINED, COMMANDS, CONTENDERS, DELETIONS, ELECTION, ELECTION_HALTS, FOREIGN,
    GUARANTEE, HALTS, OVERTAKING, REENTRY,
};
use crate::explore::{explore, story, tell};

const LARGER: [(&str, Bounds); 15] = [
    ("three contenders and longer leases", CONTENDERS),
    ("overtaking and clocks that differ", OVERTAKING),
    ("deletions and clocks that differ", DELETIONS),
    ("halts and clocks that differ", HALTS),
    ("foreign answers and clocks that differ", FOREIGN),
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
    (
        "breaks of two locks",
        Bounds {
            duration: 6,
            breaks: 2,
            ..BREAKS
        },
    ),
    ("combined", COMBINED),
    (
        "foreign answers and overtaking",
        Bounds {
            duration: 6,
            foreign: 2,
            in_flight: 2,
            ..FOREIGN
        },
    ),
    (
        "everything at once, and an administrator",
        Bounds {
            administrator: true,
            ..COMBINED
        },
    ),
    (
        "reentry and overtaking",
        Bounds {
            in_flight: 2,
            ..REENTRY
        },
    ),
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
    let short = Bounds {
        duration: 3,
        ..CONTENDERS
    };
    holds_in("three contenders", short);
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
    holds_in("overtaking", OVERTAKING.with_equal_clocks());
}

#[test]
fn reentry_makes_no_second_holder() {
    holds_in("reentry", REENTRY);
}

#[test]
fn after_a_break_only_whom_it_hit_may_act_on() {
    holds_in("breaks", BREAKS);
    holds_in("deletions", DELETIONS.with_equal_clocks());
}

#[test]
fn a_machine_that_stood_still_lets_no_work_go_on_that_is_not_its_own() {
    holds_in("halts", HALTS.with_equal_clocks());
}

#[test]
fn answers_that_are_not_the_servers_settle_nothing() {
    holds_in("foreign answers", FOREIGN.with_equal_clocks());
}

#[test]
fn an_election_needs_no_clock_but_the_contenders_own() {
    holds_in("election", ELECTION);
}

#[test]
fn a_leader_whose_machine_stood_still_leads_no_longer_than_others_wait() {
    holds_in("election and halts", ELECTION_HALTS);
}

#[test]
#[ignore = "takes minutes and gigabytes: cargo xtask model"]
fn larger_worlds_keep_the_guarantee() {
    for (name, bounds) in LARGER {
        holds_in(name, bounds);
    }
}

#[test]
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
    // How it happens is the point.
    tell(format_args!(
        "model: two hold at once, with clocks {} s apart:\n{}",
        bounds.apart,
        story(&bounds, path)
    ));
}
