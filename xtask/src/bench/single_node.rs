//! `status` and `acquire` of one node, compared with `kubectl get lease` and `kubectl patch lease`.

use std::time::Duration;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use super::command_cost::{Cost, Tools, cost, median};
use super::raw_patches::NAMESPACE;
use crate::output::result;

/// How often each command runs.
const ROUNDS: usize = 20;

/// The patch of a Lease for both programs: five fields and an annotation.
const PATCH: &str = r#"{"metadata":{"annotations":{"kubectl-maint.dev/reason":"bench"}},"spec":{"holderIdentity":"bench@here","acquireTime":"2026-01-01T00:00:00.000000Z","renewTime":"2026-01-01T00:00:00.000000Z","leaseDurationSeconds":1800,"leaseTransitions":1}}"#;

const TARGET: &str = "wall <= 0.12, cpu <= 0.07, memory <= 0.25";

/// Prints both comparisons.
pub(super) fn compare_with_kubectl(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    plane.create_nodes(&[NodeSpec::ready("bench-one")])?;
    cost(&tools.plugin(&["acquire", "bench-one", "-q"]))?;
    cost(&tools.plugin(&["release", "bench-one", "-q"]))?;
    let mut status = Vec::new();
    let mut get = Vec::new();
    let mut acquire = Vec::new();
    let mut patch = Vec::new();
    for _ in 0..ROUNDS {
        status.push(cost(&tools.plugin(&["status", "bench-one", "-q"]))?);
        get.push(cost(&tools.kubectl(&[
            "get",
            "lease",
            "bench-one",
            "-n",
            NAMESPACE,
        ]))?);
        acquire.push(cost(&tools.plugin(&[
            "acquire",
            "bench-one",
            "-q",
            "-m",
            "bench",
        ]))?);
        cost(&tools.plugin(&["release", "bench-one", "-q"]))?;
        patch.push(cost(&tools.kubectl(&[
            "patch",
            "lease",
            "bench-one",
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            PATCH,
        ]))?);
        cost(&tools.plugin(&["release", "bench-one", "-q"]))?;
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
    Ok(())
}

/// Prints what our command needs in proportion to theirs.
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
