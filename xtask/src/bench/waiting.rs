//! Waiting for a lock: handovers, crashes, and many waiters.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use control_plane::ControlPlane;

use super::figures::{Figures, millis};
use super::load::command;
use super::measure::{Tools, cost};
use super::nodes::make_nodes;
use crate::cargo::run;
use crate::say::say;

/// How many holders crash.
const CRASHES: usize = 10;

/// How long after the waiter's first message its watch is open.
const SETTLED: Duration = Duration::from_millis(50);

/// With the library: two holders in turn, holders that crash, and many waiters.
pub(super) fn library(plane: &ControlPlane, hand_overs: usize, crowd: usize) -> Result<()> {
    make_nodes(plane, "hand-over", 1)?;
    make_nodes(plane, "crash", CRASHES)?;
    make_nodes(plane, "crowd", 1)?;
    for arguments in [
        ["hand-over", "hand-over-0", &hand_overs.to_string()],
        ["crash", "crash", &CRASHES.to_string()],
        ["waiters", "crowd-0", &crowd.to_string()],
    ] {
        run(&mut command(plane, &arguments))?;
    }
    Ok(())
}

/// With the plugin: `release` by one holder, and `acquire --wait` by the other.
pub(super) fn commands(plane: &ControlPlane, tools: &Tools, hand_overs: usize) -> Result<()> {
    const NODE: &str = "command-0";
    make_nodes(plane, "command", 1)?;
    let by = |holder: &str, arguments: &[&str]| {
        let mut command = tools.plugin(arguments);
        command.env("KUBECTL_MAINT_HOLDER", holder);
        command
    };
    let (mut holder, mut waiter) = ("bench@here", "bench@there");
    cost(&by(holder, &["acquire", NODE, "-q"]))?;
    let mut times = Vec::new();
    for _ in 0..hand_overs {
        let wait = by(waiter, &["acquire", NODE, "--wait", "--timeout=1m"]);
        let release = by(holder, &["release", NODE, "-q"]);
        times.push(hand_over(wait, release)?);
        std::mem::swap(&mut holder, &mut waiter);
    }
    let times = Figures::of(times);
    say(format_args!(
        "hand-over by the plugin, from the start of `release` to the end of `acquire --wait`, {hand_overs} times:\n  \
         p50 {}  p99 {}  longest {}",
        millis(times.quantile(0.5)),
        millis(times.quantile(0.99)),
        millis(times.longest()),
    ));
    Ok(())
}

/// Releases the lock that `wait` waits for, and returns how long `wait` then takes to end.
fn hand_over(mut wait: Command, mut release: Command) -> Result<Duration> {
    let mut waiter = wait.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let stderr = waiter.stderr.take().context("it has a stderr")?;
    let mut lines = BufReader::new(stderr).lines();
    for line in lines.by_ref() {
        if line?.starts_with("waiting") {
            break;
        }
    }
    sleep(SETTLED);
    let begun = Instant::now();
    let mut releaser = release.stdout(Stdio::null()).spawn()?;
    let acquired = waiter.wait()?;
    let took = begun.elapsed();
    let released = releaser.wait()?;
    ensure!(
        acquired.success() && released.success(),
        "it was not handed over"
    );
    Ok(took)
}
