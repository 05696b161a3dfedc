//! `simulate`: many seeds, on every processor.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use clap::Parser;
use simulation::checker::Rule;
use simulation::fault::Fault;
use simulation::fault_counts::FaultCounts;
use simulation::trace;

/// Live through seeded worlds of faults and check what the library promises
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seeds: u64,
    /// The first one
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// This one alone
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Tell everything that happens
    #[arg(long, requires = "seed")]
    trace: bool,
}

/// So many of the seeds that break a promise are named.
const FIRST: usize = 12;

/// In so many worlds every fault strikes.
const ENOUGH: u64 = 1_000;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) if arguments.trace => {
            say(&trace::everything(seed));
            ExitCode::SUCCESS
        }
        Some(seed) => run(seed, 1),
        None => run(arguments.from, arguments.seeds),
    }
}

fn run(from: u64, seeds: u64) -> ExitCode {
    let began = Instant::now();
    let (next, broken) = (AtomicU64::new(from), AtomicU64::new(0));
    let faults = Mutex::new(FaultCounts::default());
    let rules = Mutex::new(BTreeMap::<Rule, BTreeSet<u64>>::new());
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds {
                        return;
                    }
                    let verdict = trace::verdict(seed);
                    *faults.lock().unwrap_or_else(PoisonError::into_inner) += verdict.faults;
                    for rule in verdict.rules {
                        let mut rules = rules.lock().unwrap_or_else(PoisonError::into_inner);
                        rules.entry(rule).or_default().insert(seed);
                    }
                    if let Some(story) = verdict.broken {
                        broken.fetch_add(1, Ordering::Relaxed);
                        say(&story);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner();
    let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    say(faults.table().trim_end());
    for (rule, seeds) in rules.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let first: Vec<String> = seeds.iter().take(FIRST).map(u64::to_string).collect();
        let (number, first) = (seeds.len(), first.join(" "));
        say(&format!("{rule:?} is broken by {number} seeds: {first}"));
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&format!(
        "{seeds} seeds from {from} in {seconds:.0}s, {:.0} a second: {broken} break a promise",
        seeds as f64 / seconds
    ));
    let never: Vec<Fault> = faults.missing().collect();
    let is_tame = seeds >= ENOUGH && !never.is_empty();
    if is_tame {
        say(&format!(
            "these faults never struck, which proves nothing: {never:?}"
        ));
    }
    ExitCode::from(u8::from(broken > 0 || is_tame))
}

/// Prints a line; who reads no more needs no more.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
