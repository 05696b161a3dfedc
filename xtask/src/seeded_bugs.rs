//! Adds seeded bugs to the library, and reports whether the simulation and the model find each of them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::cargo::cargo;
use crate::output::print;

/// Only packages with this feature, and those that depend on them, are compiled again after the tests.
const TEST: [&str; 5] = [
    "test",
    "--quiet",
    "--workspace",
    "--features=simulation/seeded-bugs",
    "--test",
];

/// Runs the simulation and the model on every bug, and prints a table. Fails if one of them misses a bug that it must
/// find, or if both miss it.
pub(crate) fn run() -> Result<()> {
    // The simulation uses only one processor.
    let (model, simulation) = thread::scope(|scope| {
        let model = scope.spawn(|| verdicts(cargo(&TEST).arg("model")));
        let simulation = verdicts(cargo(&TEST).arg("seeded_bugs"));
        (model.join().expect("no panic"), simulation)
    });
    let (model, simulation) = (model?, simulation?);
    ensure!(
        model.keys().eq(simulation.keys()) && !model.is_empty(),
        "model and simulation know different mistakes"
    );
    print(format_args!("{:24} {:42} MODEL", "MISTAKE", "SIMULATION"));
    for (bug, by_simulation) in &simulation {
        print(format_args!("{bug:24} {by_simulation:42} {}", model[bug]));
    }
    let uncaught: Vec<&String> = simulation
        .iter()
        .filter(|(bug, verdict)| *verdict == MISSED && model[*bug] == MISSED)
        .map(|(bug, _)| bug)
        .collect();
    ensure!(uncaught.is_empty(), "caught by neither: {uncaught:?}");
    Ok(())
}

/// The verdict for a bug that was not found.
const MISSED: &str = "-";

/// The verdicts of a test, which prints a line with the bug, a tab and the verdict for each.
fn verdicts(test: &mut Command) -> Result<BTreeMap<String, String>> {
    let mut test = test
        .args(["--", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to run cargo")?;
    let mut verdicts = BTreeMap::new();
    for line in BufReader::new(test.stdout.take().context("it has one")?).lines() {
        if let Some((bug, verdict)) = line?.split_once('\t') {
            // The test harness may have printed the start of the line.
            let bug = bug.rsplit(' ').next().unwrap_or(bug);
            verdicts.insert(bug.to_owned(), verdict.to_owned());
        }
    }
    let status = test.wait()?;
    ensure!(
        status.success(),
        "a planted mistake was not caught: {status}"
    );
    Ok(verdicts)
}
