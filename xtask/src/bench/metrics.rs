//! Requests for each verb, as the API server's own metrics count them.

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use super::measure::{Tools, cost};
use crate::say::say;

/// Runs each verb once and prints how many requests it took.
pub(super) fn requests(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..10)
        .map(|number| NodeSpec::ready(&format!("count-{number}")).label("bench", "count"))
        .collect();
    plane.create_nodes(&nodes)?;
    say("requests, as the server's metrics count them:");
    for (what, arguments) in [
        ("acquire, a new Lease", &["acquire", "count-0"][..]),
        ("renew", &["renew", "count-0"]),
        ("status of one node", &["status", "count-0"]),
        (
            "status of one node, wide",
            &["status", "count-0", "-o", "wide"],
        ),
        ("release", &["release", "count-0"]),
        ("acquire", &["acquire", "count-0"]),
        ("release", &["release", "count-0"]),
        ("hold, with its Event", &["hold", "count-0", "-m", "bench"]),
        ("unhold, with its Event", &["unhold", "count-0"]),
        (
            "acquire of 10 nodes",
            &["acquire", "-l", "bench=count", "--yes"],
        ),
        (
            "release of 10 nodes",
            &["release", "-l", "bench=count", "--yes"],
        ),
        ("status of all nodes", &["status"]),
        ("status of all nodes, wide", &["status", "-o", "wide"]),
    ] {
        let before = counted(plane)?;
        cost(&tools.plugin(&[arguments, &["-q"]].concat()))?;
        say(format_args!("  {:>3}  {what}", counted(plane)? - before));
    }
    Ok(())
}

/// All requests about our objects so far. The heartbeats and lists of Kubernetes' own clients are
/// about others, or come from others.
fn counted(plane: &ControlPlane) -> Result<u64> {
    let metrics = plane.kubectl(&["get", "--raw", "/metrics"])?;
    Ok(metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_request_total{"))
        .filter(|line| {
            ["leases", "nodes", "namespaces", "events"]
                .iter()
                .any(|resource| line.contains(&format!("resource=\"{resource}\"")))
                && !line.contains("verb=\"WATCH\"")
        })
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .map(|count| count as u64)
        .sum())
}
