//! When a node counts as unreachable. The rule is the same for every command.

use std::time::{Duration, Instant};

use control_plane::{Readiness, Rule};
use serde_json::json;

use crate::fixture::{Fixture, Levels, fixture};
use crate::support::{Run, ago};

/// The age in seconds of a heartbeat that is still valid for at least [`LEEWAY`].
const YOUNG: i64 = 30;
const LEEWAY: Duration = Duration::from_secs(10);
/// The age in seconds of a heartbeat that is no longer valid.
const OLD: i64 = 41;

/// Sets the last heartbeat of the node's kubelet to this many seconds ago.
fn beat(fixture: &Fixture, node: &str, age: i64) {
    fixture
        .cluster
        .patch(&lease_path(node), &json!({"spec": {"renewTime": ago(age)}}));
}

/// Sets the Ready condition of the node, reported this many seconds ago.
fn report(fixture: &Fixture, node: &str, status: &str, age: i64) {
    let at = ago(age);
    let at = format!("{}Z", at.split('.').next().expect("seconds"));
    fixture.cluster.patch(
        &format!("/api/v1/nodes/{node}/status"),
        &json!({"status": {"conditions": [{
            "type": "Ready", "status": status, "reason": "Told", "message": "as the test says",
            "lastHeartbeatTime": at, "lastTransitionTime": ago(600),
        }]}}),
    );
}

/// Calls `set` and then `look`, and returns the result of `look`. Repeats both if they took so long that a [`YOUNG`]
/// age may have become old.
fn in_time<T>(set: impl Fn(), look: impl Fn() -> T) -> T {
    for _ in 0..20 {
        let begun = Instant::now();
        set();
        let seen = look();
        if begun.elapsed() < LEEWAY {
            return seen;
        }
    }
    panic!("no look takes less than {LEEWAY:?}");
}

/// A dry run of `fence` for the node.
fn fence(fixture: &Fixture, node: &str) -> Run {
    let words = ["fence", node, "--powered-off=dark", "--dry-run"];
    fixture.cluster.maint(words).run()
}

/// Creates a node with a pod of the same name that is being deleted.
fn node_with_pod(fixture: &Fixture, name: &str, ready: Readiness) -> String {
    let node = fixture.make_node(name, ready, Duration::from_secs(600));
    let set = fixture.replica_set(name);
    let placed = json!({"spec": {"nodeName": node}});
    fixture.ended_pod(name, Some(&set), &placed);
    node
}

fn lease_path(node: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
}

/// If the node is not ready, its kubelet may still send heartbeats: `fence` waits for the control plane.
#[test]
fn a_node_that_is_not_ready_is_unreachable_when_its_heartbeat_is_old() {
    fixture("unreachable", |fixture| {
        let words =
            "the kubelet has reported the node as not ready for 10m, and its last heartbeat is";
        for (short, ready, words, fenced) in [
            (
                "unheard",
                Readiness::Unknown,
                "the node has been unreachable for 10m",
                0,
            ),
            ("unwell", Readiness::NotReady, words, 6),
        ] {
            let node = node_with_pod(fixture, short, ready);
            let alive = || (fixture.levels(short), fence(fixture, &node));
            let (levels, run) = in_time(|| beat(fixture, &node, YOUNG), alive);
            levels.are(&[("node-alive", Some("Blocker")), ("node-unreachable", None)]);
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("its kubelet is alive"), "{run}");

            beat(fixture, &node, OLD);
            let levels = fixture.levels(short);
            levels.are(&[("node-alive", None), ("node-unreachable", Some("Info"))]);
            let found = levels.words("node-unreachable");
            assert!(found.starts_with(words), "{found}");
            let run = fence(fixture, &node);
            assert_eq!(run.code, fenced, "{run}");
            let called =
                format!("cannot fence node/{short}: Kubernetes does not report it unreachable yet");
            assert_eq!(run.to_string().contains(&called), fenced == 6, "{run}");
            // Two unreachable nodes would count as the loss of the zone.
            fixture.cluster.delete(&format!("/api/v1/nodes/{node}"));
        }
    });
}

/// The time of the heartbeat looks old, but it changes.
#[test]
fn a_kubelet_whose_clock_is_behind_is_alive() {
    fixture("late-clock", |fixture| {
        let node = node_with_pod(fixture, "unwell", Readiness::NotReady);
        beat(fixture, &node, 90);
        let report = fixture.force_delete("unwell", &["-o", "json"]);
        let expected = format!("node/{node}: watching its heartbeat for up to 12s");
        let run = report.until_it_says(&expected);
        beat(fixture, &node, 81);
        let levels = Levels::of_run(&run.ends());
        levels.are(&[("node-alive", Some("Blocker")), ("node-unreachable", None)]);
    });
}

#[test]
fn a_heartbeat_is_as_long_a_sign_of_life_as_its_lease_says() {
    fixture("long-lease", |fixture| {
        fixture.harmless_pod("web-1");
        beat(fixture, &fixture.node, 100);
        let long = json!({"spec": {"leaseDurationSeconds": 120}});
        fixture.cluster.patch(&lease_path(&fixture.node), &long);
        let levels = fixture.levels("web-1");
        levels.are(&[("node-alive", Some("Blocker"))]);
        let words = levels.words("node-alive");
        assert!(
            words.ends_with(" ago, limit 2m): let the kubelet end the pods"),
            "{words}"
        );
        let run = fence(fixture, &fixture.node);
        assert!(run.stderr.contains("its kubelet is alive"), "{run}");
    });
}

#[test]
fn a_node_without_a_heartbeat_is_unreachable_only_if_the_control_plane_says_so() {
    fixture("unheard", |fixture| {
        for (short, status, level) in [
            ("unwell", Some("False"), ("node-alive", "Unread")),
            ("unset", None, ("node-alive", "Unread")),
            ("unheard", Some("Unknown"), ("node-unreachable", "Info")),
        ] {
            let node = node_with_pod(fixture, short, Readiness::NotReady);
            fixture.cluster.delete(&lease_path(&node));
            match status {
                Some(status) => report(fixture, &node, status, 60),
                None => {
                    let none = json!({"status": {"conditions": null}});
                    let path = format!("/api/v1/nodes/{node}/status");
                    fixture.cluster.patch(&path, &none);
                }
            }
            let levels = fixture.levels(short);
            let (id, level) = level;
            levels.are(&[(id, Some(level))]);
            assert!(!levels.all("node-alive").contains(&"Blocker"));
            let run = fence(fixture, &node);
            let (code, expected) = match status {
                Some("Unknown") => (0, "(dry run)"),
                Some(_) => (6, "its Ready condition is still False, set by its kubelet"),
                None => (6, "its Ready condition is missing"),
            };
            assert_eq!(run.code, code, "{run}");
            assert!(run.to_string().contains(expected), "{run}");
            fixture.cluster.delete(&format!("/api/v1/nodes/{node}"));
        }
    });
}

#[test]
fn a_heartbeat_far_ahead_of_the_clock_proves_nothing() {
    fixture("ahead", |fixture| {
        fixture.harmless_pod("web-1");
        beat(fixture, &fixture.node, -4255);
        let levels = fixture.levels("web-1");
        levels.are(&[("node-unreachable", None), ("node-alive", Some("Unread"))]);
        let words = levels.words("node-alive");
        assert!(
            words.ends_with("its heartbeat is 70m ahead of the clock"),
            "{words}"
        );
        let words = ["--accept-risk=unread", "-m", "why"];
        fixture.force_delete("web-1", &words).succeeds();
        assert!(!fixture.is_there("web-1"));

        let words = ["fence", &fixture.node, "--powered-off=dark", "--timeout=0"];
        let run = fixture.cluster.maint(words).succeeds();
        let expected = "is unreachable, but its heartbeat is 70m ahead of the clock";
        assert!(run.stderr.contains(expected), "{run}");
    });
}

#[test]
fn a_ready_node_with_an_old_heartbeat_is_not_unreachable_and_counts_as_lost() {
    fixture("fading", |fixture| {
        fixture.harmless_pod("web-1");
        for short in ["worker-2", "worker-3"] {
            beat(fixture, &fixture.cluster.name(short), OLD);
        }
        fixture.levels("web-1").are(&[("mass-loss", Some("Risk"))]);
        let run = fixture
            .cluster
            .maint(["fence", &fixture.node, "--powered-off=dark", "--dry-run"])
            .run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("3 of 3 nodes"), "{run}");
        let fading = fixture.cluster.name("worker-2");
        let run = fixture
            .cluster
            .maint(["fence", &fading, "--powered-off=dark", "--dry-run"])
            .run();
        assert_eq!(run.code, 6, "{run}");
        let expected = "its Ready condition is still True";
        assert!(run.stderr.contains(expected), "{run}");
    });
}

#[test]
fn without_heartbeats_the_reported_conditions_count() {
    fixture("reported", |fixture| {
        fixture.harmless_pod("web-1");
        let rules = [
            Rule::new("", &["pods"], &["get", "delete"]),
            Rule::new("", &["nodes"], &["get", "list"]),
        ];
        let user = fixture.user("dev", &rules);
        let levels = || fixture.levels_for(&user, "web-1");
        let young = || report(fixture, &fixture.node, "Unknown", YOUNG);
        in_time(young, levels).are(&[("node-alive", Some("Blocker"))]);
        // A live kubelet may have nothing to report for minutes.
        report(fixture, &fixture.node, "Unknown", OLD);
        levels().are(&[("node-alive", Some("Unread"))]);
    });
}
