//! `status` and `acquire` of one node, compared with `kubectl get lease` and `kubectl patch lease`.

use std::time::Duration;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};
use serde_json::json;

use super::command_cost::{Cost, NAMESPACE, Tools, cost, median};
use crate::output::result;

/// How often each command runs.
const ROUNDS: usize = 20;

const NODE: &str = "bench-one";

const TARGET: &str = "wall <= 0.12, cpu <= 0.07, memory <= 0.25";

/// Prints the comparisons.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    plane.create_nodes(&[NodeSpec::ready(NODE)])?;
    let release = || cost(&tools.plugin(&["release", NODE, "-q"]));
    cost(&tools.plugin(&["acquire", NODE, "-q"]))?;
    release()?;
    // What an acquisition writes: five fields and an annotation.
    let patch = json!({
        "metadata": {"annotations": {"kubectl-maint.dev/reason": "bench"}},
        "spec": {
            "holderIdentity": "bench@here",
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseDurationSeconds": 1800,
            "leaseTransitions": 1,
        },
    });
    let patch = patch.to_string();
    let (mut status, mut typed, mut get) = (Vec::new(), Vec::new(), Vec::new());
    let (mut acquired, mut patched) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        status.push(cost(&tools.plugin(&["status", NODE, "-q"]))?);
        typed.push(cost(&tools.kubectl(&["maint", "status", NODE, "-q"]))?);
        let lease = ["get", "lease", NODE, "-n", NAMESPACE];
        get.push(cost(&tools.kubectl(&lease))?);
        let acquire = ["acquire", NODE, "-q", "-m", "bench"];
        acquired.push(cost(&tools.plugin(&acquire))?);
        release()?;
        let lease = [
            "patch",
            "lease",
            NODE,
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            &patch,
        ];
        patched.push(cost(&tools.kubectl(&lease))?);
        release()?;
    }
    let get = median(&get);
    compare(
        "status of one node / kubectl get lease",
        TARGET,
        median(&status),
        get,
    );
    compare(
        "kubectl maint status / kubectl get lease, both as typed",
        "wall <= 1.05",
        median(&typed),
        get,
    );
    compare(
        "acquire of one node / kubectl patch lease",
        TARGET,
        median(&acquired),
        median(&patched),
    );
    Ok(())
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
