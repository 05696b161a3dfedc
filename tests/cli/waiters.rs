//! The holder of a lock sees who is waiting for it.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;

use crate::acquire_wait::{bob, held_by_bob};
use crate::support::{Cluster, LEASES, Treatment, on_both, on_one, requests};

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
fn each_wait_writes_one_event() {
    on_both("waiters-shown", |cluster| {
        for (number, waits) in [
            &["acquire", "--wait"][..],
            &["hold", "-m", "disk", "--wait"],
            &["with", "--wait"],
        ]
        .into_iter()
        .enumerate()
        {
            let node = held_by_bob(cluster, &format!("worker-{number}"));
            let command: &[&str] = if waits[0] == "with" {
                &["--", "true"]
            } else {
                &[]
            };
            let run = cluster.maint(waits).arg(&node).args(command);
            let running = run.until_it_says("waiting for node/");
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
            let shown = waiting(cluster, &node);
            assert!(
                shown.starts_with("  Waiting:      alice@bastion"),
                "{shown}"
            );
            assert!(shown.contains(" began to wait "), "{shown}");
            running.interrupt();
            let run = running.ends();
            assert!(!run.stderr.contains("Event"), "{run}");
            let left = events(cluster, &node);
            assert_eq!((left.len(), &left[0]), (1, event));
        }
    });
}

#[test]
fn who_got_the_lock_is_not_shown_as_waiting() {
    on_one("waiters-acquire", |cluster| {
        let node = held_by_bob(cluster, "worker-1");
        let wait = ["acquire", &node, "--wait"];
        let running = cluster.maint(wait).until_it_says("waiting for node/");
        until_one_waits(cluster, &node);
        bob(cluster, &["release", &node]).succeeds();
        assert_eq!(running.ends().code, 0);
        assert_eq!(waiting(cluster, &node), "");
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
