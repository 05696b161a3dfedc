//! A few of the worlds; `cargo xtask sim` lives through more.

use std::collections::BTreeMap;

use simulation::fault::Fault;
use simulation::fault_counts::FaultCounts;
use simulation::history::{CallOutcome, Event};
use simulation::{Plan, live, trace};

/// As many as a build without optimisation has time for.
const SEEDS: u64 = 150;

#[test]
fn the_first_seeds_keep_every_promise() {
    let broken: Vec<String> = (1..=SEEDS)
        .filter_map(|seed| trace::verdict(seed).broken)
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

#[test]
fn a_seed_repeats_its_run() {
    for seed in 1..=20 {
        assert_eq!(
            trace::everything(seed),
            trace::everything(seed),
            "seed {seed}"
        );
    }
}

/// The worlds are as bad as they are meant to be.
#[test]
fn every_fault_strikes_in_the_first_seeds() {
    let mut faults = FaultCounts::default();
    for seed in 1..=SEEDS {
        faults += trace::verdict(seed).faults;
    }
    let never: Vec<Fault> = faults.missing().collect();
    assert_eq!(never, [], "in\n{}", faults.table());
}

/// Calls end in every way that there is.
#[test]
fn everything_comes_of_them_in_the_first_seeds() {
    let mut seen = BTreeMap::<&str, u32>::new();
    for seed in 1..=SEEDS {
        for entry in live(&Plan::of(seed)) {
            for what in kinds(&entry.event) {
                *seen.entry(what).or_default() += 1;
            }
        }
    }
    let expected = [
        "Acquired",
        "AcquiredAll",
        "Renewed",
        "Released",
        "Refused",
        "HeldByCaller",
        "Unknown",
        "Nothing",
        "a list",
        "settled by a read",
        "lost by time",
        "lost otherwise",
        "got in",
    ];
    let missing: Vec<&str> = expected
        .into_iter()
        .filter(|&kind| !seen.contains_key(kind))
        .collect();
    assert!(
        missing.is_empty(),
        "never happened: {missing:?}; did: {seen:?}"
    );
}

fn kinds(event: &Event) -> &'static [&'static str] {
    match event {
        Event::Returned { ending, .. } => match ending {
            CallOutcome::Acquired { settled: true, .. } => &["Acquired", "settled by a read"],
            CallOutcome::Acquired { .. } => &["Acquired"],
            CallOutcome::AcquiredAll(_) => &["AcquiredAll"],
            CallOutcome::Renewed { .. } => &["Renewed"],
            CallOutcome::Released { .. } => &["Released"],
            CallOutcome::Nothing => &["Nothing"],
            CallOutcome::Refused(_) => &["Refused"],
            CallOutcome::HeldByCaller(_) => &["HeldByCaller"],
            CallOutcome::Unknown(_) => &["Unknown"],
        },
        Event::Lost { by_time: true, .. } => &["lost by time"],
        Event::Lost { by_time: false, .. } => &["lost otherwise"],
        Event::Listed { .. } => &["a list"],
        Event::GotIn { .. } => &["got in"],
        _ => &[],
    }
}
