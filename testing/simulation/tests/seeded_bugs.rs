//! Mistakes planted in the library, one after another: the simulation catches each that it has to, by
//! a seed whose world is sound without it.

use std::io::Write as _;

use maintenance_lease::bugs::{Bug, Detector, plant};
use simulation::{Plan, check, live};

/// How many seeds a mistake may go uncaught.
const SEEDS: u64 = 1_000;

#[test]
fn every_seeded_bug_is_found_and_no_other() {
    let mut uncaught = Vec::new();
    for bug in Bug::ALL {
        if bug.detector() == Detector::Model {
            report(bug, "-");
            continue;
        }
        let planted = plant(bug);
        let caught = (1..=SEEDS).find_map(|seed| {
            let violation = check(&live(&Plan::of(seed))).into_iter().next()?;
            Some((seed, violation.rule))
        });
        drop(planted);
        let Some((seed, rule)) = caught else {
            report(bug, "-");
            uncaught.push(bug);
            continue;
        };
        let unplanted = check(&live(&Plan::of(seed)));
        assert!(unplanted.is_empty(), "seed {seed} without {bug:?}");
        report(bug, &format!("caught: {rule:?} (seed {seed})"));
    }
    assert_eq!(uncaught, [], "not caught in {SEEDS} seeds");
}

/// A line for `cargo xtask sim --bugs`, past the harness, which keeps what a test prints.
fn report(bug: Bug, verdict: &str) {
    let _nobody_reads = writeln!(std::io::stdout(), "{bug:?}\t{verdict}");
}
