//! Queries of the cluster and of a run's requests.

use serde_json::Value;

use super::{Cluster, Run};

/// The holder of `node`. `None` if the lock is free or has no Lease.
pub(crate) fn holder_of(cluster: &Cluster, node: &str) -> Option<String> {
    let lease = cluster.find(&format!("{}/{node}", super::LEASES))?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    (!holder.is_empty()).then(|| holder.to_owned())
}

/// The Events that the plugin created on `node`, one per line, the oldest first.
pub(crate) fn events_of(cluster: &Cluster, node: &str) -> String {
    let uid = &cluster.get(&format!("/api/v1/nodes/{node}"))["metadata"]["uid"];
    let list = cluster.get("/apis/events.k8s.io/v1/namespaces/default/events");
    let mut events: Vec<&Value> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|event| event["regarding"]["name"] == node && event["eventTime"].is_string())
        .collect();
    events.sort_by_key(|event| event["eventTime"].as_str());
    let lines: Vec<String> = events
        .iter()
        .map(|event| {
            assert_eq!(&event["regarding"]["uid"], uid, "so that describe shows it");
            let word = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", word("type"), word("reason"), word("note"))
        })
        .collect();
    super::run::same_every_time(&lines.join("\n"), "")
}

/// The methods of the requests of a run with `-v6`, sorted, without watches. A controller may change a new Node during
/// the run, so these are left out: a write to the Node that got a conflict, and the reads before the next write, of the
/// Node and of the Lease right after it. Repeated reads of Leases are left out after an answer that took more than two
/// seconds: the server time is then too uncertain for a write.
pub(crate) fn requests(run: &Run) -> Vec<&str> {
    let of_node = |line: &str| line.contains("/api/v1/nodes/");
    let reads_leases = |line: &str| {
        line.contains("verb=\"GET\"") && line.contains("/kube-node-maintenance/leases")
    };
    let is_slow = |line: &str| {
        let milliseconds = line.rsplit_once("milliseconds=");
        milliseconds.is_some_and(|(_, number)| number.parse::<u64>().is_ok_and(|it| it > 2_000))
    };
    let mut lines: Vec<&str> = Vec::new();
    let (mut has_lost, mut is_checked, mut was_slow) = (false, false, false);
    for line in run.stderr.lines() {
        if of_node(line) && std::mem::take(&mut has_lost) {
            is_checked = true;
            continue;
        }
        if std::mem::take(&mut is_checked) && reads_leases(line) {
            continue;
        }
        if reads_leases(line) && was_slow && lines.iter().any(|line| reads_leases(line)) {
            continue;
        }
        was_slow |= is_slow(line);
        has_lost = of_node(line) && line.contains("status=\"409 Conflict\"");
        if !has_lost {
            lines.push(line);
        }
    }
    let mut methods: Vec<&str> = lines
        .into_iter()
        .filter(|line| !line.contains("watch=true"))
        .filter_map(|line| line.split_once("verb=\"")?.1.split('"').next())
        .collect();
    methods.sort_unstable();
    methods
}

/// How many requests of a run with `-v6` list whole Nodes instead of table rows.
pub(crate) fn lists_of_whole_nodes(run: &Run) -> usize {
    let is_whole =
        |line: &&str| line.contains("/api/v1/nodes?") && !line.contains("includeObject=");
    run.stderr.lines().filter(is_whole).count()
}
