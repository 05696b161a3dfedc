//! `status --all -o wide` of a large cluster, compared with the three lists that kubectl needs for it.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use super::command_cost::{Tools, cost, median};
use super::single_node::compare;
use crate::output::print;

/// With this number of images, a Node takes 17 KB.
const IMAGES: usize = 50;

const COUNT: usize = 5_000;

/// How often each command is measured.
const ROUNDS: usize = 5;

/// One of so many nodes is locked.
const LOCKED: usize = 10;

/// After this time, all heartbeats are late.
const LATE: Duration = Duration::from_secs(60);

const LISTS: &str = r#""$0" get nodes -o wide && "$0" get leases -n kube-node-lease && "$0" get leases -n kube-node-maintenance"#;

/// Compares while the heartbeats are recent, and after all of them are late.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..COUNT)
        .map(|number| {
            let node = NodeSpec::ready(&format!("wide-{number:05}")).images(IMAGES);
            let locked = number % LOCKED == 0;
            node.label("bench", if locked { "locked" } else { "free" })
        })
        .collect();
    plane.create_nodes(&nodes)?;
    cost(&tools.plugin(&["acquire", "-l", "bench=locked", "-q", "-m", "bench"]))?;
    // Other parts of the benchmark have left nodes without heartbeats.
    let names = plane.kubectl(&["get", "leases", "-n", "kube-node-lease", "-o", "name"])?;
    let names: Vec<&str> = names
        .lines()
        .filter_map(|name| name.rsplit('/').next())
        .collect();
    rounds("recent", "wall <= 0.12, memory <= 0.25", tools, || {
        plane.heartbeat(&names)
    })?;
    print(format_args!("waiting until all heartbeats are late"));
    thread::sleep(LATE);
    rounds("late", "wall <= 0.65, memory <= 0.7", tools, || Ok(()))
}

fn rounds(
    heartbeats: &str,
    target: &str,
    tools: &Tools,
    prepare: impl Fn() -> Result<()>,
) -> Result<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        prepare()?;
        let status = ["status", "--all", "-o", "wide", "-q"];
        ours.push(cost(&tools.plugin(&status))?);
        theirs.push(cost(&tools.shell(LISTS))?);
    }
    let what = format!(
        "status -o wide of {COUNT} nodes of 17 KB, heartbeats {heartbeats} / kubectl's three lists"
    );
    compare(&what, target, median(&ours), median(&theirs));
    Ok(())
}
