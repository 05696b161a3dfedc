//! The holder of a lock sees who is waiting for it.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::acquire_wait::{bob, held_by_bob};
use crate::support::{Cluster, LEASES, Treatment, ago, on_both, on_one, requests};
use crate::with::SHORT;

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/kube-node-maintenance/events";

/// The Events about clients that wait for `node`.
fn events(cluster: &Cluster, node: &str) -> Vec<Value> {
    let list = cluster.get(EVENTS);
    let events = list["items"].as_array().expect("a list").iter();
    let of_node = events.filter(|event| event["regarding"]["name"] == node);
    of_node.cloned().collect()
}

#[track_caller]
fn until_one_waits(cluster: &Cluster, node: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while events(cluster, node).is_empty() {
        assert!(Instant::now() < end, "nobody waits");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The part of the `describe` page that lists waiting clients.
fn waiting(cluster: &Cluster, node: &str) -> String {
    let page = bob(cluster, &["describe", node]).succeeds();
    let lines = page.stdout.lines();
    let lines = lines.skip_while(|line| !line.starts_with("  Waiting:"));
    let lines = lines.take_while(|line| !line.starts_with("  Transitions:"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_waiter_is_shown_until_they_give_up() {
    on_both("waiters-shown", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        for waits in [
            &["acquire", &node, "--wait"][..],
            &["hold", &node, "-m", "disk", "--wait"],
            &["with", &node, "--wait", "--", "true"],
        ] {
            let running = cluster.maint(waits).until_it_says("waiting for node/");
            until_one_waits(cluster, &node);
            let [event] = &events(cluster, &node)[..] else {
                panic!("one Event for each wait")
            };
            let lease = cluster.get(&format!("{LEASES}/{node}"));
            assert_eq!(event["regarding"]["uid"], lease["metadata"]["uid"]);
            assert_eq!(event["reason"], "MaintenanceWaiting");
            let note = event["note"].as_str().expect("a note");
            assert!(note.starts_with("alice@bastion"), "{note}");
            assert!(note.ends_with(&format!("node/{node}")), "{note}");
            assert!(waiting(cluster, &node).starts_with("  Waiting:      alice@bastion"));
            running.interrupt();
            let run = running.ends();
            assert!(!run.stderr.contains("Event"), "{run}");
            assert_eq!(events(cluster, &node), [Value::Null; 0]);
            assert_eq!(waiting(cluster, &node), "");
        }
    });
}

#[test]
fn a_wait_that_ends_with_the_lock_leaves_nothing() {
    on_one("waiters-acquire", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let wait = ["acquire", &node, "--wait"];
        let running = cluster.maint(wait).until_it_says("waiting for node/");
        until_one_waits(cluster, &node);
        bob(cluster, &["release", &node]).succeeds();
        assert_eq!(running.ends().code, 0);
        assert_eq!(events(cluster, &node), [Value::Null; 0]);
    });
}

/// Creates an Event of alice, who began to wait `began` seconds ago and renewed the Event `renewed`
/// seconds ago.
fn waits_since(cluster: &Cluster, node: &str, began: i64, renewed: Option<i64>) {
    let series = renewed.map(|renewed| json!({"count": 2, "lastObservedTime": ago(renewed)}));
    let event = json!({
        "metadata": {"generateName": format!("{node}-"), "namespace": "kube-node-maintenance"},
        "eventTime": ago(began),
        "action": "MaintenanceWaiting",
        "reason": "MaintenanceWaiting",
        "note": "by hand",
        "type": "Normal",
        "reportingController": "kubectl-maint.dev/test",
        "reportingInstance": "alice@bastion",
        "series": series,
        "regarding": {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": node,
            "namespace": "kube-node-maintenance",
        },
    });
    cluster.create(EVENTS, &event);
}

#[test]
fn a_waiter_who_was_killed_is_not_shown_for_long() {
    on_one("waiters-killed", |cluster| {
        let [old, renewed, abandoned, own] =
            ["old", "renewed", "abandoned", "own"].map(|short| held_by_bob(cluster, short));
        waits_since(cluster, &old, 300, None);
        waits_since(cluster, &renewed, 3000, Some(30));
        waits_since(cluster, &abandoned, 3000, Some(300));
        assert_eq!(waiting(cluster, &old), "");
        let shown = waiting(cluster, &renewed);
        assert!(shown.contains("alice@bastion (since "), "{shown}");
        assert_eq!(waiting(cluster, &abandoned), "");
        // This waiting command was killed after it had acquired the lock.
        waits_since(cluster, &own, 60, None);
        bob(cluster, &["release", &own]).succeeds();
        cluster.maint(["acquire", &own]).succeeds();
        assert_eq!(waiting(cluster, &own), "");
    });
}

/// Only `describe` of one locked node reads these Events.
#[test]
fn only_describe_of_one_node_reads_the_waiters() {
    on_both("waiters-cost", |cluster| {
        let [one, two] = ["one", "two"].map(|short| held_by_bob(cluster, short));
        let free = cluster.node("free");
        let reads = |words: &[&str]| {
            let run = cluster.maint(words).args(["-v6"]).succeeds();
            let lines = requests(&run).len();
            (lines, run.stderr.contains("/events"))
        };
        assert_eq!(reads(&["describe", &one]), (5, true));
        assert_eq!(reads(&["describe", &free]), (4, false));
        assert!(!reads(&["describe", &one, &two]).1);
        assert!(!reads(&["status", &one]).1);
        assert!(!reads(&["status", "-o", "wide"]).1);
    });
}

#[test]
fn with_reports_a_new_waiter() {
    on_one("waiters-with", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let with = bob(cluster, &["with", &nodes[0], &nodes[1]]);
        let with = with.args(SHORT).args(["--", "sleep", "600"]);
        let mut with = with.until_it_says("running on this machine");
        let wait = ["acquire", &nodes[1], "--wait"];
        let waiter = cluster.maint(wait).until_it_says("waiting for node/");
        with.says("alice@bastion has been waiting for node/");
        // Waits until the Events have been read again.
        std::thread::sleep(Duration::from_secs(4));
        with.interrupt();
        let run = with.ends();
        assert_eq!(run.stderr.matches("has been waiting").count(), 1, "{run}");
        assert_eq!(waiter.ends().code, 0);
    });
}

/// The server may not answer requests for Events, or may refuse them.
#[test]
fn a_wait_does_not_need_its_event() {
    on_one("waiters-hang", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let proxy = cluster.proxy(
            |method: &Method, sent: &str| match sent.contains("/events") {
                true if *method == Method::POST => Treatment::Keep,
                _ => Treatment::Pass,
            },
        );
        let wait = cluster.maint(["acquire", &node, "--wait"]);
        let wait = wait.kubeconfig(&proxy.kubeconfig);
        let mut running = wait.until_it_says("waiting for node/");
        let kept = proxy.kept();
        bob(cluster, &["release", &node]).succeeds();
        running.says("To release, extend or hold:");
        let run = running.ends();
        assert_eq!(run.code, 0, "{run}");
        assert!(!run.stderr.contains("Event"), "{run}");
        drop(kept);
    });
}
