//! The requests of each command, as the API server's own metrics count them.

use anyhow::{Context as _, Result, bail};
use control_plane::{ControlPlane, NodeSpec};

use super::command_cost::{Tools, cost};
use crate::output::result;

/// The commands with their labels, in an order in which each can succeed.
const STEPS: [(&str, &[&str]); 25] = [
    ("acquire, a new Lease", &["acquire", "count-0"]),
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
    ("with, and its release", &["with", "count-0", "--", "true"]),
    ("wait for a node that is already free", &["wait", "count-0"]),
    ("acquire by another holder", &["acquire", "count-0", THEIRS]),
    (
        "release by force, with its Event",
        &["release", "count-0", "--force", "--yes", "-m", "bench"],
    ),
    ("acquire by another holder", &["acquire", "count-0", THEIRS]),
    (
        "hold that takes over, with its Event",
        &["hold", "count-0", "--take-over", "--yes", "-m", "bench"],
    ),
    ("unhold, with its Event", &["unhold", "count-0"]),
    (
        "acquire with --duration=1s",
        &["acquire", "count-0", THEIRS, "--duration=1s"],
    ),
    (
        "wait until it has expired, with its watch",
        &["wait", "count-0"],
    ),
    (
        "acquire of a node with an expired lock, with its Event",
        &["acquire", "count-0"],
    ),
    ("status of all nodes", &["status", "--all"]),
    (
        "status of all nodes, wide",
        &["status", "--all", "-o", "wide"],
    ),
    ("status --pods", &["status", "--pods"]),
    ("leases of all namespaces", &["leases", "-A"]),
];

const THEIRS: &str = "--holder=bench@there";

/// Runs each command once and prints how many requests it sent.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..10)
        .map(|number| NodeSpec::ready(&format!("count-{number}")).label("bench", "count"))
        .collect();
    plane.create_nodes(&nodes)?;
    result("requests, as the server's metrics count them:");
    let run = |what: &str, arguments: &[&str]| {
        let before = requests(plane)?;
        let [verb, arguments @ ..] = arguments else {
            bail!("{what}: no verb");
        };
        cost(&tools.plugin(&[&[*verb, "-q"], arguments].concat()))?;
        result(format_args!("  {:>3}  {what}", requests(plane)? - before));
        Ok(())
    };
    for (what, arguments) in STEPS {
        run(what, arguments)?;
    }
    let token = tools
        .plugin(&["status", "count-0", "-o", "lock-id"])
        .output()?;
    let token = String::from_utf8(token.stdout)?;
    let token = token.split_whitespace().last().context("no token")?;
    run("verify", &["verify", "count-0", "--lock-id", token])
}

/// The resources whose requests are counted.
const OURS: [&str; 8] = [
    "events",
    "leasecandidates",
    "leases",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "pods",
    "volumeattachments",
];

/// The number of requests so far.
fn requests(plane: &ControlPlane) -> Result<u64> {
    Ok(count(&plane.kubectl(&["get", "--raw", "/metrics"])?))
}

/// Counts the requests for our kinds of objects in the server's metrics. Watches are left out, because the server
/// counts them only when they end. Kubernetes' own clients use other kinds, or replace objects, which the plugin
/// never does.
pub(super) fn count(metrics: &str) -> u64 {
    let is_counted = |line: &&str| {
        let says = |name: &str, value: &str| line.contains(&format!("{name}=\"{value}\""));
        line.starts_with("apiserver_request_total{")
            && OURS.iter().any(|resource| says("resource", resource))
            && !says("verb", "WATCH")
            && !says("verb", "PUT")
    };
    let counts = metrics.lines().filter(is_counted).filter_map(|line| {
        let count: f64 = line.rsplit(' ').next()?.parse().ok()?;
        Some(count as u64)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_requests_are_counted_and_not_watches_or_other_kinds() {
        let metrics = r#"# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="leases",verb="PATCH"} 7
apiserver_request_total{code="409",resource="leases",verb="PATCH"} 2
apiserver_request_total{code="200",resource="nodes",verb="GET"} 1.2e+01
apiserver_request_total{code="200",resource="leases",verb="WATCH"} 100
apiserver_request_total{code="200",resource="leases",verb="PUT"} 100
apiserver_request_total{code="200",resource="configmaps",verb="GET"} 100
apiserver_requested_deprecated_apis{resource="leases"} 100
"#;
        assert_eq!(count(metrics), 21);
    }
}
