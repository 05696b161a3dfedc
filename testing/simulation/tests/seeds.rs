//! A few of the worlds; `cargo xtask sim` lives through more.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use simulation::fault::Fault;
use simulation::fault_counts::FaultCounts;
use simulation::history::{Call, CallOutcome, Event, LockSet, OnConflict};
use simulation::{Plan, live, trace};

/// Few, because every run of the tests has them. `cargo xtask sim` runs more.
const SEEDS: u64 = 150;

/// What happened in the first seeds. All tests share it.
struct FirstSeeds {
    broken: Vec<String>,
    faults: FaultCounts,
    endings: BTreeSet<&'static str>,
}

static FIRST_SEEDS: LazyLock<FirstSeeds> = LazyLock::new(|| {
    let mut first = FirstSeeds {
        broken: Vec::new(),
        faults: FaultCounts::default(),
        endings: BTreeSet::new(),
    };
    for seed in 1..=SEEDS {
        let history = live(&Plan::of(seed));
        let verdict = trace::judge(seed, &history);
        first.broken.extend(verdict.broken);
        first.faults += verdict.faults;
        let endings = history.iter().flat_map(|entry| endings(&entry.event));
        first.endings.extend(endings.copied());
    }
    first
});

#[test]
fn the_first_seeds_keep_every_promise() {
    let broken = &FIRST_SEEDS.broken;
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
    let faults = &FIRST_SEEDS.faults;
    let never: Vec<Fault> = faults.missing().collect();
    assert_eq!(never, [], "in\n{}", faults.table());
}

/// Calls end in every way that there is.
#[test]
fn everything_comes_of_them_in_the_first_seeds() {
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
        "a set with reentry",
        "a set that waits",
        "a set at once",
        "a partial set",
        "a set of holds",
    ];
    let seen = &FIRST_SEEDS.endings;
    let missing: Vec<&str> = expected
        .into_iter()
        .filter(|ending| !seen.contains(ending))
        .collect();
    assert!(missing.is_empty(), "never: {missing:?}; but {seen:?}");
}

fn endings(event: &Event) -> &'static [&'static str] {
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
        Event::Called {
            call: Call::AcquireAll(set),
            ..
        } => kinds(set),
        Event::Lost { by_time: true, .. } => &["lost by time"],
        Event::Lost { by_time: false, .. } => &["lost otherwise"],
        Event::Listed { .. } => &["a list"],
        Event::GotIn { .. } => &["got in"],
        _ => &[],
    }
}

/// The kind of a set.
fn kinds(set: &LockSet) -> &'static [&'static str] {
    match set.manner {
        _ if set.holds() => &["a set of holds"],
        _ if set.reentry => &["a set with reentry"],
        OnConflict::Waiting => &["a set that waits"],
        OnConflict::AtOnce => &["a set at once"],
        OnConflict::Partial => &["a partial set"],
    }
}
