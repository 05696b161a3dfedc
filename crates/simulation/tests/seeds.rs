//! A few of the worlds; `cargo xtask sim` lives through more.

use std::collections::BTreeMap;

use simulation::history::{Ending, Event, Fate, Freeze};
use simulation::{Plan, live, trace};

/// As many as a build without optimisation has time for.
const SEEDS: u64 = 150;

#[test]
fn the_first_seeds_keep_every_promise() {
    let broken: Vec<String> = (1..=SEEDS).filter_map(trace::verdict).collect();
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

/// The worlds are as bad as they are meant to be: everything that can happen does.
#[test]
fn everything_happens_in_the_first_seeds() {
    let mut seen = BTreeMap::<String, u32>::new();
    for seed in 1..=SEEDS {
        for entry in live(&Plan::of(seed)) {
            for what in kinds(&entry.event) {
                *seen.entry(what).or_default() += 1;
            }
        }
    }
    let expected = [
        "Acquired",
        "Renewed",
        "Released",
        "Refused",
        "Unknown",
        "Nothing",
        "settled by a read",
        "Lost",
        "Late",
        "AnswerLost",
        "refused on the way",
        "answered instead",
        "Cut",
        "Stopped",
        "Suspended",
        "Paused",
        "crash",
        "step",
        "deletion",
        "break",
        "lost by time",
        "lost otherwise",
        "conflict",
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

fn kinds(event: &Event) -> Vec<String> {
    let kinds: &[&str] = match event {
        Event::Returned { ending, .. } => match ending {
            Ending::Acquired { settled: true, .. } => &["Acquired", "settled by a read"],
            Ending::Acquired { .. } => &["Acquired"],
            Ending::Renewed { .. } => &["Renewed"],
            Ending::Released { .. } => &["Released"],
            Ending::Nothing => &["Nothing"],
            Ending::Refused(_) => &["Refused"],
            Ending::Unknown(_) => &["Unknown"],
        },
        Event::Mishap { fate, .. } => match fate {
            Fate::Lost => &["Lost"],
            Fate::Late => &["Late"],
            Fate::AnswerLost => &["AnswerLost"],
            Fate::Refused(_) => &["refused on the way"],
            Fate::AnsweredInstead(_) => &["answered instead"],
            Fate::Cut => &["Cut"],
        },
        Event::Froze { how, .. } => match how {
            Freeze::Stopped => &["Stopped"],
            Freeze::Suspended => &["Suspended"],
            Freeze::Paused => &["Paused"],
        },
        Event::Crashed { .. } => &["crash"],
        Event::Stepped { .. } => &["step"],
        Event::Committed { lease: None, .. } => &["deletion"],
        Event::Called { call, .. } if call.is_break() => &["break"],
        Event::Lost { by_time: true, .. } => &["lost by time"],
        Event::Lost { by_time: false, .. } => &["lost otherwise"],
        Event::Served { status: 409, .. } => &["conflict"],
        Event::Waits { done: true, .. } => &["got in"],
        _ => &[],
    };
    kinds.iter().map(|&kind| kind.to_owned()).collect()
}
