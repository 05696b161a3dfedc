//! Mistakes planted in the library, one after another: the simulation catches each that it has to, by
//! a seed whose world is sound without it.

use std::io::Write as _;

use maintenance_lease::bugs::{Bug, Detector, plant};
use simulation::{Plan, check, live};

/// How many seeds a mistake may go uncaught.
const SEEDS: u64 = 2_000;

/// And how many one is given that the simulation does not have to catch.
const SEEDS_FOR_OTHERS: u64 = 200;

#[test]
fn every_seeded_bug_is_found_and_no_other() {
    let mut uncaught = Vec::new();
    for bug in Bug::ALL {
        let has_to = bug.detector() != Detector::Model;
        let seeds = if has_to { SEEDS } else { SEEDS_FOR_OTHERS };
        let planted = plant(bug);
        let caught = (1..=seeds).find_map(|seed| {
            let violation = check(&live(&Plan::of(seed))).into_iter().next()?;
            Some((seed, violation.rule))
        });
        drop(planted);
        if let Some((seed, _)) = caught {
            let unplanted = check(&live(&Plan::of(seed)));
            assert!(unplanted.is_empty(), "seed {seed} without {bug:?}");
        }
        let verdict = match caught {
            Some((seed, rule)) => format!("caught: {rule:?} (seed {seed})"),
            None => "-".to_owned(),
        };
        // A line for `cargo xtask sim --bugs`, past the harness, which keeps what a test prints.
        let _nobody_reads = writeln!(std::io::stdout(), "{bug:?}\t{verdict}");
        if has_to && caught.is_none() {
            uncaught.push(bug);
        }
    }
    assert_eq!(uncaught, [], "not caught in {SEEDS} seeds");
}
