//! `status --all -o wide` of a large cluster, compared with the three lists that kubectl needs for it.

use std::ops::Range;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use super::bare_requests::{self, Requested};
use super::command_cost::{Cost, Tools, cost, median};
use super::single_node::compare;
use crate::output::print;

/// With this number of images, a Node takes 17 KB.
const IMAGES: usize = 50;

/// The number of nodes at first, and at the end.
const COUNT: usize = 5_000;
const MANY: usize = 15_000;

/// How often each command is measured.
const ROUNDS: usize = 5;

/// One of so many nodes is locked.
const LOCKED: usize = 10;

/// After this time, all heartbeats are late.
const LATE: Duration = Duration::from_secs(60);

const LISTS: &str = r#""$0" get nodes -o wide && "$0" get leases -n kube-node-lease && "$0" get leases -n kube-node-maintenance"#;

/// Compares while the heartbeats are recent, after all of them are late, and with a larger cluster.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    add_nodes(plane, 0..COUNT)?;
    cost(&tools.plugin(&["acquire", "-l", "bench=locked", "-q", "-m", "bench"]))?;
    recent(plane, tools, COUNT, "wall <= 0.12, memory <= 0.25")?;
    print(format_args!("waiting until all heartbeats are late"));
    thread::sleep(LATE);
    let late = "wall <= 0.2, memory <= 0.25";
    let kubectl = rounds("late", tools, COUNT, late, || Ok(()))?;
    bare_requests::compare(plane, Requested::Lists, 5, kubectl)?;
    add_nodes(plane, COUNT..MANY)?;
    recent(plane, tools, MANY, "wall <= 0.15, memory <= 0.25")?;
    Ok(())
}

fn add_nodes(plane: &ControlPlane, numbers: Range<usize>) -> Result<()> {
    let name = |number| format!("wide-{number:05}");
    let nodes: Vec<NodeSpec> = numbers
        .map(|number| {
            let node = NodeSpec::ready(&name(number)).images(IMAGES);
            let locked = number % LOCKED == 0;
            node.label("bench", if locked { "locked" } else { "free" })
        })
        .collect();
    plane.create_nodes(&nodes)
}

/// Compares while all heartbeats are recent. Returns the cost of kubectl.
fn recent(plane: &ControlPlane, tools: &Tools, count: usize, target: &str) -> Result<Cost> {
    // Other parts of the benchmark have left nodes without heartbeats.
    let names = plane.kubectl(&["get", "leases", "-n", "kube-node-lease", "-o", "name"])?;
    let names: Vec<&str> = names
        .lines()
        .filter_map(|name| name.rsplit('/').next())
        .collect();
    let renew = || plane.heartbeat(&names);
    rounds("recent", tools, count, target, renew)
}

fn rounds(
    heartbeats: &str,
    tools: &Tools,
    count: usize,
    target: &str,
    prepare: impl Fn() -> Result<()>,
) -> Result<Cost> {
    let mut ours: Vec<Cost> = Vec::new();
    let mut theirs: Vec<Cost> = Vec::new();
    for _ in 0..ROUNDS {
        prepare()?;
        ours.push(cost(
            &tools.plugin(&["status", "--all", "-o", "wide", "-q"]),
        )?);
        theirs.push(cost(&lists(tools))?);
    }
    compare(
        &format!(
            "status -o wide of {count} nodes of 17 KB, heartbeats {heartbeats} / kubectl's three lists"
        ),
        target,
        median(&ours),
        median(&theirs),
    );
    Ok(median(&theirs))
}

/// The command that lists nodes, heartbeats and locks with kubectl.
fn lists(tools: &Tools) -> Command {
    tools.shell(LISTS)
}
