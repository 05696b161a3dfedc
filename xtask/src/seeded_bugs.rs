//! Plants mistakes in the library, and reports which of the simulation and the model catches each.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::cargo;
use crate::output::print;

/// Only packages with the feature, and what depends on them, are built again after the tests.
const TEST: [&str; 5] = [
    "test",
    "--quiet",
    "--workspace",
    "--features=simulation/seeded-bugs",
    "--test",
];

/// Runs both on every mistake and prints a table. Fails if one of them misses a mistake that it must catch,
/// or if neither catches a mistake.
pub(crate) fn run() -> Result<()> {
    let model = verdicts(cargo(&TEST).arg("model"))?;
    let simulation = verdicts(cargo(&TEST).arg("seeded_bugs"))?;
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

/// The verdict for a mistake that was not caught.
const MISSED: &str = "-";

/// The lines "mistake, tab, verdict" that a test prints.
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
