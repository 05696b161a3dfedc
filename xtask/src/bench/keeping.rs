//! The cost of keeping locks: requests, processor time and memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use control_plane::ControlPlane;

use super::figures::millis;
use super::load::command;
use super::measure::Tools;
use super::metrics::Requests;
use super::nodes::make_nodes;
use super::process::Process;
use crate::say::say;

/// The duration of each lease, which is the default of `with`.
const LENGTH: Duration = Duration::from_secs(60);

/// How long to measure. Each lock is renewed several times.
const TIME: Duration = LENGTH;

/// How long to wait before counting, until all watches are open.
const SETTLED: Duration = Duration::from_secs(3);

/// One lock, and `many` in one process.
pub(super) fn keepers(plane: &ControlPlane, many: usize) -> Result<()> {
    make_nodes(plane, "keep", many.max(1))?;
    observe(
        plane,
        1,
        "(targets: one request a renewal, < 12 MB, no measurable CPU)",
    )?;
    observe(plane, many, "(target: none lost)")
}

/// One lock with a command of the plugin under it.
pub(super) fn with(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    make_nodes(plane, "with", 1)?;
    let length = format!("--lease-duration={}s", LENGTH.as_secs());
    let work = ["sh", "-c", "echo runs; exec cat"];
    let mut child = tools
        .plugin(&[&["with", "with-0", "-q", &length, "--"], &work[..]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let seen = watch_with(plane, &mut child);
    drop(child.stdin.take());
    let status = child.wait()?;
    ensure!(status.success(), "with ended with {status}");
    seen
}

fn watch_with(plane: &ControlPlane, child: &mut Child) -> Result<()> {
    let stdout = child.stdout.take().context("it has a stdout")?;
    BufReader::new(stdout).read_line(&mut String::new())?;
    sleep(SETTLED);
    let plugin = Process::of(child.id());
    let started = plugin.children()?;
    let [supervisor] = started[..] else {
        bail!("{} processes beside the plugin", started.len());
    };
    let processes = [("plugin", plugin), ("supervisor", Process::of(supervisor))];
    let before = processes.each_ref().map(|(_, process)| process.cpu_time());
    let requests = Requests::counted(plane)?;
    sleep(TIME);
    let requests = Requests::counted(plane)? - requests;
    say(format_args!(
        "`with` for {} s, on a lock of {} s, beside a command that does nothing:\n  \
         {} renewals by {} requests",
        TIME.as_secs(),
        LENGTH.as_secs(),
        requests.patched,
        requests.all,
    ));
    for ((name, process), before) in processes.iter().zip(before) {
        let cpu = process.cpu_time()?.saturating_sub(before?);
        say(format_args!(
            "  {name:<10}  cpu {:.3} % of one ({})  peak memory {:.1} MiB",
            100.0 * cpu.as_secs_f64() / TIME.as_secs_f64(),
            millis(cpu),
            process.peak_memory()? as f64 / 1024.0,
        ));
    }
    say("  (targets: one request a renewal, < 12 MB, no measurable CPU)");
    Ok(())
}

fn observe(plane: &ControlPlane, count: usize, target: &str) -> Result<()> {
    let length = LENGTH.as_secs().to_string();
    let mut child = command(plane, &["keepers", "keep", &count.to_string(), &length])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let seen = watch(plane, &mut child, count, target);
    drop(child.stdin.take());
    let status = child.wait()?;
    ensure!(status.success(), "a lock was lost");
    seen
}

fn watch(plane: &ControlPlane, child: &mut Child, count: usize, target: &str) -> Result<()> {
    let stdout = child.stdout.take().context("it has a stdout")?;
    BufReader::new(stdout).read_line(&mut String::new())?;
    sleep(SETTLED);
    let process = Process::of(child.id());
    let (requests, cpu) = (Requests::counted(plane)?, process.cpu_time()?);
    sleep(TIME);
    let cpu = process.cpu_time()?.saturating_sub(cpu);
    let requests = Requests::counted(plane)? - requests;
    say(format_args!(
        "{count} of {} s kept for {} s in one process of the library:\n  \
         none lost; {} renewals by {} requests ({:.2}/s)\n  \
         cpu {:.3} % of one ({})  peak memory {:.1} MiB  files and connections open {}\n  {target}",
        LENGTH.as_secs(),
        TIME.as_secs(),
        requests.patched,
        requests.all,
        requests.all as f64 / TIME.as_secs_f64(),
        100.0 * cpu.as_secs_f64() / TIME.as_secs_f64(),
        millis(cpu),
        process.peak_memory()? as f64 / 1024.0,
        process.open_files()?,
    ));
    Ok(())
}
