//! When a node counts as silent: the same for every verb.

use std::time::{Duration, Instant};

use control_plane::{Readiness, Rule};
use serde_json::json;

use crate::scene::{Levels, Scene, scene};
use crate::support::{Run, ago};

/// An age at which a heartbeat still counts, for [`LEEWAY`] at least.
const YOUNG: i64 = 30;
const LEEWAY: Duration = Duration::from_secs(10);
/// An age at which it does not count any more.
const OLD: i64 = 41;

/// The node's kubelet renewed its heartbeat so many seconds ago.
fn beat(scene: &Scene, node: &str, age: i64) {
    scene
        .cluster
        .patch(&lease_path(node), &json!({"spec": {"renewTime": ago(age)}}));
}

/// It reported its condition so many seconds ago.
fn report(scene: &Scene, node: &str, status: &str, age: i64) {
    let at = ago(age);
    let at = format!("{}Z", at.split('.').next().expect("seconds"));
    scene.cluster.patch(
        &format!("/api/v1/nodes/{node}/status"),
        &json!({"status": {"conditions": [{
            "type": "Ready", "status": status, "reason": "Told", "message": "as the test says",
            "lastHeartbeatTime": at, "lastTransitionTime": ago(600),
        }]}}),
    );
}

/// What is seen after `set`, once the look was so quick that what was young has not become old.
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

/// What `fence` says of the node, which it leaves as it is.
fn fence(scene: &Scene, node: &str) -> Run {
    let words = ["fence", node, "--powered-off=dark", "--dry-run=client"];
    scene.cluster.maint(words).run()
}

/// A node with a pod of its name that was asked to end.
fn node_with_pod(scene: &Scene, name: &str, ready: Readiness) -> String {
    let node = scene.make_node(name, ready, Duration::from_secs(600));
    let set = scene.replica_set(name);
    let placed = json!({"spec": {"nodeName": node}});
    scene.ended_pod(name, Some(&set), &placed);
    node
}

fn lease_path(node: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
}

/// If the node is not ready, its kubelet may still send heartbeats: `fence` waits for the control plane.
#[test]
fn a_node_that_is_not_ready_is_silent_once_its_heartbeat_is_old() {
    scene("silence", |scene| {
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
            let node = node_with_pod(scene, short, ready);
            let alive = || (scene.levels(short), fence(scene, &node));
            let (levels, run) = in_time(|| beat(scene, &node, YOUNG), alive);
            levels.are(&[("node-alive", Some("Blocker")), ("node-unreachable", None)]);
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("its kubelet is alive"), "{run}");

            beat(scene, &node, OLD);
            let levels = scene.levels(short);
            levels.are(&[("node-alive", None), ("node-unreachable", Some("Info"))]);
            let found = levels.words("node-unreachable");
            assert!(found.starts_with(words), "{found}");
            let run = fence(scene, &node);
            assert_eq!(run.code, fenced, "{run}");
            let called =
                format!("cannot fence node/{short}: Kubernetes does not report it unreachable yet");
            assert_eq!(run.to_string().contains(&called), fenced == 6, "{run}");
            // Two silent ones would be a loss of the zone.
            scene.cluster.delete(&format!("/api/v1/nodes/{node}"));
        }
    });
}

/// The time that it writes looks old, but it changes.
#[test]
fn a_kubelet_whose_clock_is_behind_is_alive() {
    scene("late-clock", |scene| {
        let node = node_with_pod(scene, "unwell", Readiness::NotReady);
        beat(scene, &node, 90);
        let report = scene.force_delete("unwell", &["-o", "json"]);
        let told = format!("node/{node}: watching its heartbeat for up to 12s");
        let run = report.until_it_says(&told);
        beat(scene, &node, 81);
        let levels = Levels::of_run(&run.ends());
        levels.are(&[("node-alive", Some("Blocker")), ("node-unreachable", None)]);
    });
}

#[test]
fn a_heartbeat_is_as_long_a_sign_of_life_as_its_lease_says() {
    scene("long-lease", |scene| {
        scene.harmless_pod("web-1");
        beat(scene, &scene.node, 100);
        let long = json!({"spec": {"leaseDurationSeconds": 120}});
        scene.cluster.patch(&lease_path(&scene.node), &long);
        let levels = scene.levels("web-1");
        levels.are(&[("node-alive", Some("Blocker"))]);
        let words = levels.words("node-alive");
        assert!(
            words.ends_with("and its heartbeat is 2m or older"),
            "{words}"
        );
        let run = fence(scene, &scene.node);
        assert!(run.stderr.contains("its kubelet is alive"), "{run}");
    });
}

#[test]
fn a_node_that_has_no_heartbeat_is_silent_only_where_the_control_plane_says_so() {
    scene("unheard", |scene| {
        for (short, status, level) in [
            ("unwell", Some("False"), ("node-alive", "Unread")),
            ("unset", None, ("node-alive", "Unread")),
            ("unheard", Some("Unknown"), ("node-unreachable", "Info")),
        ] {
            let node = node_with_pod(scene, short, Readiness::NotReady);
            scene.cluster.delete(&lease_path(&node));
            match status {
                Some(status) => report(scene, &node, status, 60),
                None => {
                    let none = json!({"status": {"conditions": null}});
                    let path = format!("/api/v1/nodes/{node}/status");
                    scene.cluster.patch(&path, &none);
                }
            }
            let levels = scene.levels(short);
            let (id, level) = level;
            levels.are(&[(id, Some(level))]);
            assert!(!levels.all("node-alive").contains(&"Blocker"));
            let run = fence(scene, &node);
            let (code, told) = match status {
                Some("Unknown") => (0, "(dry run)"),
                Some(_) => (6, "its Ready condition is still False, set by its kubelet"),
                None => (6, "its Ready condition is missing"),
            };
            assert_eq!(run.code, code, "{run}");
            assert!(run.to_string().contains(told), "{run}");
            scene.cluster.delete(&format!("/api/v1/nodes/{node}"));
        }
    });
}

#[test]
fn a_heartbeat_far_ahead_of_the_clock_proves_nothing() {
    scene("ahead", |scene| {
        scene.harmless_pod("web-1");
        beat(scene, &scene.node, -4255);
        let levels = scene.levels("web-1");
        levels.are(&[("node-unreachable", None), ("node-alive", Some("Unread"))]);
        let words = levels.words("node-alive");
        assert!(
            words.ends_with("its heartbeat is 70m ahead of the clock"),
            "{words}"
        );
        let words = ["--accept-risk=unread", "-m", "why", "--timeout=0"];
        scene.force_delete("web-1", &words).succeeds();
        assert!(!scene.is_there("web-1"));

        let words = ["fence", &scene.node, "--powered-off=dark", "--timeout=0"];
        let run = scene.cluster.maint(words).succeeds();
        let told = "is unreachable, but its heartbeat is 70m ahead of the clock";
        assert!(run.stderr.contains(told), "{run}");
    });
}

#[test]
fn a_node_that_is_called_ready_is_not_silent_and_counts_as_lost() {
    scene("fading", |scene| {
        scene.harmless_pod("web-1");
        for short in ["worker-2", "worker-3"] {
            beat(scene, &scene.cluster.name(short), OLD);
        }
        scene.levels("web-1").are(&[("mass-loss", Some("Risk"))]);
        let run = scene
            .cluster
            .maint([
                "fence",
                &scene.node,
                "--powered-off=dark",
                "--dry-run=client",
            ])
            .run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("3 of 3 nodes"), "{run}");
        let fading = scene.cluster.name("worker-2");
        let run = scene
            .cluster
            .maint(["fence", &fading, "--powered-off=dark", "--dry-run=client"])
            .run();
        assert_eq!(run.code, 6, "{run}");
        let told = "its Ready condition is still True";
        assert!(run.stderr.contains(told), "{run}");
    });
}

#[test]
fn who_may_not_read_heartbeats_goes_by_the_conditions_that_the_kubelet_reports() {
    scene("reported", |scene| {
        scene.harmless_pod("web-1");
        let rules = [
            Rule::new("", &["pods"], &["get", "delete"]),
            Rule::new("", &["nodes"], &["get", "list"]),
        ];
        let user = scene.user("dev", &rules);
        let levels = || scene.levels_for(&user, "web-1");
        let young = || report(scene, &scene.node, "Unknown", YOUNG);
        in_time(young, levels).are(&[("node-alive", Some("Blocker"))]);
        // A live kubelet may have nothing to report for minutes.
        report(scene, &scene.node, "Unknown", OLD);
        levels().are(&[("node-alive", Some("Unread"))]);
    });
}
