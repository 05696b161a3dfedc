//! Requests for each verb, as the API server's own metrics count them.

use std::ops::Sub;

use anyhow::{Context as _, Result, bail};
use control_plane::{ControlPlane, NodeSpec};

use super::measure::{Tools, cost};
use crate::say::say;

/// Each verb, in an order in which each can succeed, and its label.
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
    ("wait, for what is so", &["wait", "count-0"]),
    ("acquire, by another", &["acquire", "count-0", THEIRS]),
    (
        "release by force, with its Event",
        &["release", "count-0", "--force", "--yes", "-m", "bench"],
    ),
    ("acquire, by another", &["acquire", "count-0", THEIRS]),
    (
        "hold that takes over, with its Event",
        &["hold", "count-0", "--take-over", "--yes", "-m", "bench"],
    ),
    ("unhold, with its Event", &["unhold", "count-0"]),
    (
        "acquire, for a second",
        &["acquire", "count-0", THEIRS, "--duration=1s"],
    ),
    (
        "wait, until it expired, with its watch",
        &["wait", "count-0", "--for=expired"],
    ),
    (
        "acquire of what expired, with its Event",
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

/// Runs each verb once and prints how many requests it took.
pub(super) fn requests(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..10)
        .map(|number| NodeSpec::ready(&format!("count-{number}")).label("bench", "count"))
        .collect();
    plane.create_nodes(&nodes)?;
    say("requests, as the server's metrics count them:");
    let count = |what: &str, arguments: &[&str]| {
        let before = Requests::counted(plane)?;
        let [verb, arguments @ ..] = arguments else {
            bail!("{what}: no verb");
        };
        cost(&tools.plugin(&[&[*verb, "-q"], arguments].concat()))?;
        let made = Requests::counted(plane)? - before;
        say(format_args!("  {:>3}  {what}", made.all));
        Ok(())
    };
    for (what, arguments) in STEPS {
        count(what, arguments)?;
    }
    let token = tools
        .plugin(&["status", "count-0", "-o", "lock-id"])
        .output()?;
    let token = String::from_utf8(token.stdout)?;
    let token = token.split_whitespace().last().context("no token")?;
    count("verify", &["verify", "count-0", "--lock-id", token])
}

/// The requests that are counted.
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

/// Successful requests for our kinds of objects. Kubernetes' own clients use other kinds, or replace
/// objects, which the plugin never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requests {
    /// All requests except watches, which the server counts only when they end.
    pub(super) all: u64,
    /// Patches that were applied.
    pub(super) patched: u64,
}

impl Requests {
    /// All so far.
    pub(super) fn counted(plane: &ControlPlane) -> Result<Self> {
        Ok(Self::read(&plane.kubectl(&["get", "--raw", "/metrics"])?))
    }

    /// Reads the server's metrics.
    pub(super) fn read(metrics: &str) -> Self {
        let mut requests = Self { all: 0, patched: 0 };
        for line in metrics.lines() {
            let says = |name: &str, value: &str| line.contains(&format!("{name}=\"{value}\""));
            if !line.starts_with("apiserver_request_total{")
                || !OURS.iter().any(|resource| says("resource", resource))
                || says("verb", "WATCH")
                || says("verb", "PUT")
            {
                continue;
            }
            let count = line.rsplit(' ').next().and_then(|count| count.parse().ok());
            let count = count.map_or(0, |count: f64| count as u64);
            requests.all += count;
            if says("verb", "PATCH") && says("code", "200") {
                requests.patched += count;
            }
        }
        requests
    }
}

impl Sub for Requests {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            patched: self.patched - before.patched,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_counted_and_watches_and_others_are_not() {
        let metrics = r#"# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="leases",verb="PATCH"} 7
apiserver_request_total{code="409",resource="leases",verb="PATCH"} 2
apiserver_request_total{code="200",resource="nodes",verb="GET"} 1.2e+01
apiserver_request_total{code="200",resource="leases",verb="WATCH"} 100
apiserver_request_total{code="200",resource="leases",verb="PUT"} 100
apiserver_request_total{code="200",resource="configmaps",verb="GET"} 100
apiserver_requested_deprecated_apis{resource="leases"} 100
"#;
        let read = Requests::read(metrics);
        assert_eq!(
            read,
            Requests {
                all: 21,
                patched: 7
            }
        );
        let before = Requests { all: 1, patched: 1 };
        assert_eq!(
            read - before,
            Requests {
                all: 20,
                patched: 6
            }
        );
    }
}
