//! The compared commands.

use std::time::Duration;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};
use tokio::runtime::Runtime;

use super::measure::{Cost, Tools, cost, median};
use super::raw::{Patches, Write};
use crate::say::say;

pub(super) const NAMESPACE: &str = "kube-node-maintenance";

/// The patch of a Lease for both programs: five fields and an annotation.
const PATCH: &str = r#"{"metadata":{"annotations":{"kubectl-maint.dev/reason":"bench"}},"spec":{"holderIdentity":"bench@here","acquireTime":"2026-01-01T00:00:00.000000Z","renewTime":"2026-01-01T00:00:00.000000Z","leaseDurationSeconds":1800,"leaseTransitions":1}}"#;

/// Compares `status` and `acquire` of one node with `kubectl get lease` and `kubectl patch lease`.
pub(super) fn one_node(plane: &ControlPlane, tools: &Tools, rounds: usize) -> Result<()> {
    plane.create_nodes(&[NodeSpec::ready("bench-one")])?;
    cost(&tools.plugin(&["acquire", "bench-one", "-q"]))?;
    cost(&tools.plugin(&["release", "bench-one", "-q"]))?;
    let mut status = Vec::new();
    let mut get = Vec::new();
    let mut acquire = Vec::new();
    let mut patch = Vec::new();
    for _ in 0..rounds {
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
        "wall <= 0.2, cpu <= 0.1, memory <= 0.25",
        median(&status),
        median(&get),
    );
    compare(
        "acquire of one node / kubectl patch lease",
        "wall <= 0.2, cpu <= 0.1, memory <= 0.25",
        median(&acquire),
        median(&patch),
    );
    Ok(())
}

/// Compares `acquire -l` with as many patches by kubectl, and the rates of `acquire -l` and `release -l`
/// with those of bare patches.
pub(super) fn by_label(
    plane: &ControlPlane,
    tools: &Tools,
    runtime: &Runtime,
    count: usize,
) -> Result<()> {
    let acquire = rates(plane, tools, runtime, "label", count, 5)?;
    let xargs = cost(&tools.shell(&format!(
        "seq -f 'label-%05g' 0 {} | xargs -P8 -INODE kubectl patch lease NODE -n {NAMESPACE} --type=merge -p '{PATCH}'",
        count - 1
    )))?;
    compare(
        &format!("acquire of {count} nodes / xargs -P8 kubectl patch"),
        "wall <= 0.01",
        acquire,
        xargs,
    );
    Ok(())
}

/// Compares the rates of `acquire -l` and `release -l` with those of the same patches alone. Returns the
/// cost of an acquisition.
pub(super) fn rates(
    plane: &ControlPlane,
    tools: &Tools,
    runtime: &Runtime,
    name: &str,
    count: usize,
    rounds: usize,
) -> Result<Cost> {
    let nodes: Vec<NodeSpec> = (0..count)
        .map(|number| NodeSpec::ready(&format!("{name}-{number:05}")).label("bench", name))
        .collect();
    plane.create_nodes(&nodes)?;
    let label = format!("bench={name}");
    let acquire = || cost(&tools.plugin(&["acquire", "-l", &label, "-q", "-m", "bench"]));
    let release = || cost(&tools.plugin(&["release", "-l", &label, "-q"]));
    let prefix = format!("{name}-");
    let raw = |write| {
        runtime.block_on(async {
            let patches = Patches::of(plane, &prefix, write).await?;
            patches.send().await
        })
    };
    // The first run creates the Leases.
    acquire()?;
    release()?;
    let mut acquisitions = (Vec::new(), Vec::new());
    let mut releases = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        acquisitions.0.push(acquire()?);
        releases.0.push(release()?);
        acquisitions.1.push(raw(Write::Acquire)?);
        releases.1.push(raw(Write::Release)?);
    }
    for (what, (ours, raw)) in [
        ("acquisitions", &mut acquisitions),
        ("releases", &mut releases),
    ] {
        let ours = median(ours).wall.as_secs_f64();
        raw.sort_unstable();
        let raw = raw[raw.len() / 2].as_secs_f64();
        say(format_args!(
            "rate of {count} {what}, lists included / of the same patches alone: {:.2}  ({:.0}/s, {:.0}/s; target >= 0.8)",
            raw / ours,
            count as f64 / ours,
            count as f64 / raw,
        ));
    }
    Ok(median(&acquisitions.0))
}

/// Compares `status -o wide` of many nodes with kubectl listing the same three kinds.
pub(super) fn wide(plane: &ControlPlane, tools: &Tools, count: usize) -> Result<()> {
    say(format_args!(
        "making {count} nodes of 17 KB, and their Leases"
    ));
    let nodes: Vec<NodeSpec> = (0..count)
        .map(|number| NodeSpec {
            images: 50,
            ..NodeSpec::ready(&format!("wide-{number:05}")).label("bench", "wide")
        })
        .collect();
    plane.create_nodes(&nodes)?;
    cost(&tools.plugin(&["acquire", "-l", "bench=wide", "-q", "-m", "bench"]))?;
    // Without fresh heartbeats, `status` would read whole Nodes, which is not measured here.
    let names: Vec<&str> = nodes.iter().map(|node| &node.name[..]).collect();
    plane.heartbeat(&names)?;
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..5 {
        ours.push(cost(&tools.plugin(&["status", "-o", "wide", "-q"]))?);
        let mut sum = Cost::default();
        for arguments in [
            &["get", "nodes"][..],
            &["get", "leases", "-n", NAMESPACE],
            &["get", "leases", "-n", "kube-node-lease"],
        ] {
            let one = cost(&tools.kubectl(arguments))?;
            sum.wall += one.wall;
            sum.cpu += one.cpu;
            sum.memory = sum.memory.max(one.memory);
        }
        theirs.push(sum);
    }
    compare(
        &format!("status -o wide of {count} nodes / kubectl get of the three kinds"),
        "wall <= 0.2, memory <= 0.25",
        median(&ours),
        median(&theirs),
    );
    Ok(())
}

fn compare(what: &str, target: &str, ours: Cost, theirs: Cost) {
    let ratio = |ours: Duration, theirs: Duration| ours.as_secs_f64() / theirs.as_secs_f64();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    say(format_args!(
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
