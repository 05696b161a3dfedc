//! `status` and `acquire` of one node, compared with `kubectl get lease` and `kubectl patch lease`.

use std::time::Duration;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use super::bare_requests::{self, NODE, Requested, acquisition};
use super::command_cost::{Cost, Tools, cost, median};
use super::raw_patches::NAMESPACE;
use crate::output::result;

/// How often each command runs.
const ROUNDS: usize = 20;

const TARGET: &str = "wall <= 0.12, cpu <= 0.07, memory <= 0.25";

/// Prints both comparisons.
pub(super) fn compare_with_kubectl(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    plane.create_nodes(&[NodeSpec::ready(NODE)])?;
    cost(&tools.plugin(&["acquire", NODE, "-q"]))?;
    cost(&tools.plugin(&["release", NODE, "-q"]))?;
    let acquisition_patch = acquisition(1).to_string();
    let mut status = Vec::new();
    let mut get = Vec::new();
    let mut acquire = Vec::new();
    let mut patch = Vec::new();
    for _ in 0..ROUNDS {
        status.push(cost(&tools.plugin(&["status", NODE, "-q"]))?);
        get.push(cost(
            &tools.kubectl(&["get", "lease", NODE, "-n", NAMESPACE]),
        )?);
        acquire.push(cost(
            &tools.plugin(&["acquire", NODE, "-q", "-m", "bench"]),
        )?);
        cost(&tools.plugin(&["release", NODE, "-q"]))?;
        patch.push(cost(&tools.kubectl(&[
            "patch",
            "lease",
            NODE,
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            &acquisition_patch,
        ]))?);
        cost(&tools.plugin(&["release", NODE, "-q"]))?;
    }
    compare(
        "status of one node / kubectl get lease",
        TARGET,
        median(&status),
        median(&get),
    );
    compare(
        "acquire of one node / kubectl patch lease",
        TARGET,
        median(&acquire),
        median(&patch),
    );
    bare_requests::compare(plane, Requested::Acquire, 20, median(&patch))
}

/// Prints the cost of our command as a ratio to the other one.
pub(super) fn compare(what: &str, target: &str, ours: Cost, theirs: Cost) {
    let ratio = |ours: Duration, theirs: Duration| ours.as_secs_f64() / theirs.as_secs_f64();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    result(format_args!(
        "{what}:\n  wall {:.3} ({:.1} ms, {:.1} ms)  cpu {:.3} ({:.1} ms, {:.1} ms)  memory {:.3} ({:.1} MiB, {:.1} MiB)\n  target: {target}",
        ratio(ours.wall, theirs.wall),
        millis(ours.wall),
        millis(theirs.wall),
        ratio(ours.cpu, theirs.cpu),
        millis(ours.cpu),
        millis(theirs.cpu),
        ours.memory as f64 / theirs.memory as f64,
        ours.memory as f64 / 1024.0,
        theirs.memory as f64 / 1024.0,
    ));
}
