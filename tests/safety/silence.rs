//! When a node counts as silent: the same for every verb.

use std::time::{Duration, Instant};

use control_plane::{Readiness, Rule};
use serde_json::json;

use crate::scene::{Levels, Scene, scene};
use crate::support::ago;

/// An age at which a heartbeat still counts, for [`LEEWAY`] at least.
const YOUNG: i64 = 30;
const LEEWAY: Duration = Duration::from_secs(10);
/// An age at which it does not count any more.
const OLD: i64 = 41;

/// The node's kubelet renewed its heartbeat so many seconds ago.
fn beat(scene: &Scene, node: &str, age: i64) {
    scene.cluster.patch(
        &format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"),
        &json!({"spec": {"renewTime": ago(age)}}),
    );
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

#[test]
fn a_node_that_is_not_ready_is_silent_once_its_heartbeat_is_old() {
    scene("silence", |scene| {
        for (short, ready) in [
            ("unheard", Readiness::Unknown),
            ("unwell", Readiness::NotReady),
        ] {
            let node = scene.make_node(short, ready, Duration::from_secs(600));
            let set = scene.replica_set(short);
            let placed = json!({"spec": {"nodeName": node}});
            scene.ended_pod(short, Some(&set), &placed);
            let fence = || {
                let words = ["fence", &node, "--powered-off=dark", "--dry-run=client"];
                scene.cluster.maint(words).run()
            };
            let alive = || (scene.levels(short), fence());
            let (levels, run) = in_time(|| beat(scene, &node, YOUNG), alive);
            levels.are(&[("node-alive", Some("refuse")), ("node-silent", None)]);
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("is alive"), "{run}");

            beat(scene, &node, OLD);
            let levels = scene.levels(short);
            levels.are(&[("node-alive", None), ("node-silent", Some("warn"))]);
            let run = fence();
            assert_eq!(run.code, 0, "{run}");
            // Two silent ones would be a loss of the zone.
            scene.cluster.delete(&format!("/api/v1/nodes/{node}"));
        }
    });
}

#[test]
fn a_node_that_is_called_ready_is_not_silent_and_counts_as_lost() {
    scene("fading", |scene| {
        scene.harmless_pod("web-1");
        for short in ["worker-2", "worker-3"] {
            beat(scene, &scene.cluster.name(short), OLD);
        }
        scene.levels("web-1").are(&[("mass-loss", Some("confirm"))]);
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
        assert!(run.stderr.contains("has not called it silent yet"), "{run}");
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
        let levels = || {
            let run = scene.force_delete("web-1", &["-o", "json"]);
            Levels::of(run.kubeconfig(&user))
        };
        let young = || report(scene, &scene.node, "Unknown", YOUNG);
        in_time(young, levels).are(&[("node-alive", Some("refuse")), ("node-alive-unknown", None)]);
        // A live kubelet may have nothing to report for minutes.
        report(scene, &scene.node, "Unknown", OLD);
        levels().are(&[
            ("node-alive", None),
            ("node-alive-unknown", Some("unknown")),
        ]);
    });
}
