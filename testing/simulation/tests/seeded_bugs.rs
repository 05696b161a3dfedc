//! Mistakes planted in the library, one after another: the simulation catches each that it has to, by
//! a seed whose world is sound without it.

use std::io::Write as _;

use maintenance_lease::bugs::{Bug, Detector, plant};
use simulation::checker::Rule;
use simulation::{Plan, check, live};

/// How many seeds a mistake may go uncaught.
const SEEDS: u64 = 1_000;

/// The first seed that shows the mistake, and the rule that it breaks. Without the mistake, its world is sound.
fn caught(bug: Bug) -> Option<(u64, Rule)> {
    let planted = plant(bug);
    let caught = (1..=SEEDS).find_map(|seed| {
        let violation = check(&live(&Plan::of(seed))).into_iter().next()?;
        Some((seed, violation.rule))
    });
    drop(planted);
    let (seed, _) = caught?;
    let unplanted = check(&live(&Plan::of(seed)));
    assert!(unplanted.is_empty(), "seed {seed} without {bug:?}");
    caught
}

#[test]
fn every_seeded_bug_is_found_and_no_other() {
    let mut uncaught = Vec::new();
    for bug in Bug::ALL {
        let has_to = bug.detector() != Detector::Model;
        let caught = has_to.then(|| caught(bug)).flatten();
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
