//! Users who may not read everything: what they can't know has to be confirmed, and never counts as
//! well.

use control_plane::Rule;
use http::Method;
use serde_json::json;

use crate::scene::scene;
use crate::support::Treatment;

fn pods(verbs: &[&str]) -> Rule {
    Rule::new("", &["pods"], verbs)
}

#[test]
fn with_rights_on_pods_alone_everything_else_is_unknown_and_it_works() {
    scene("owner", |scene| {
        scene.ended_member_with_volume();
        let user = scene.user("dev", &[pods(&["get", "delete"])]);
        let levels = scene.levels_for(&user, "web-0");
        levels.are(&[
            ("in-grace", Some("Ok")),
            ("node-alive", Some("Unread")),
            ("node-unreachable", None),
            ("mass-loss", Some("Unread")),
            ("lease", Some("Unread")),
            ("remediation", Some("Unread")),
            ("quorum", Some("Unread")),
            ("volume-unguarded", Some("Unread")),
            ("volume-attached", Some("Unread")),
            ("pdb", Some("Unread")),
            ("owner", Some("Risk")),
            ("rights", Some("Ok")),
        ]);
        let words = levels.words("node-alive");
        assert!(
            words
                .contains("the pod has not been ready for 10m, which does not show whether its node is unreachable"),
            "{words}"
        );
        assert!(words.ends_with("no permission to get nodes"), "{words}");
        let confirm = levels.confirm().to_owned();
        assert!(confirm.contains("unread"), "{confirm}");

        // As the control plane marks what it evicts from a silent node.
        scene.cluster.patch(
            &format!("{}/status", scene.pod_path("web-0")),
            &json!({"status": {"reason": "NodeLost", "conditions": [
                {"type": "Ready", "status": "False", "lastTransitionTime": crate::support::ago(600)},
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
            ]}}),
        );
        let levels = scene.levels_for(&user, "web-0");
        let words = levels.words("node-alive");
        assert!(
            words.contains("NodeLost, evicted because of a taint"),
            "{words}"
        );

        let all = [&confirm, "-m", "the rack burnt", "--timeout=0"];
        let run = scene
            .force_delete("web-0", &all)
            .kubeconfig(&user)
            .ends_unfinished();
        assert!(
            run.stderr
                .contains("could not keep the evidence in an Event"),
            "{run}"
        );
        assert!(!scene.is_there("web-0"));
    });
}

#[test]
fn a_pod_that_counts_as_ready_tells_of_a_live_node() {
    scene("ready", |scene| {
        scene.harmless_pod("web-1");
        scene.cluster.patch(
            &format!("{}/status", scene.pod_path("web-1")),
            &json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        let user = scene.user("dev", &[pods(&["get", "delete"])]);
        scene
            .levels_for(&user, "web-1")
            .are(&[("node-alive", Some("Blocker"))]);
    });
}

#[test]
fn without_heartbeats_a_node_that_is_called_silent_is_unknown() {
    scene("heartless", |scene| {
        scene.harmless_pod("web-1");
        let rules = [
            pods(&["get", "delete"]),
            Rule::new("", &["nodes"], &["get", "list"]),
        ];
        let user = scene.user("dev", &rules);
        let report = || scene.levels_for(&user, "web-1");
        report().are(&[
            ("node-alive", Some("Unread")),
            ("node-unreachable", None),
            ("mass-loss", Some("Unread")),
            ("lease", Some("Unread")),
            // What a ReplicaSet promises is known without reading it.
            ("owner", Some("Ok")),
        ]);
        scene
            .cluster
            .delete(&format!("/api/v1/nodes/{}", scene.node));
        report().are(&[("node-alive", Some("Unread")), ("node-gone", None)]);
    });
}

#[test]
fn a_fresh_heartbeat_counts_without_the_right_to_read_its_node() {
    scene("nodeless", |scene| {
        scene.harmless_pod("web-1");
        let rules = [
            pods(&["get", "delete"]),
            Rule::new("coordination.k8s.io", &["leases"], &["get"]),
        ];
        let user = scene.user("dev", &rules);
        let report = || scene.levels_for(&user, "web-1");
        report().are(&[("node-alive", Some("Unread"))]);
        scene.heartbeat();
        report().are(&[("node-alive", Some("Blocker"))]);
    });
}

#[test]
fn who_may_not_even_read_the_target_is_told_what_it_takes() {
    scene("nobody", |scene| {
        let user = scene.user("dev", &[pods(&["watch"])]);
        let (namespace, node) = (&*scene.namespace, &*scene.node);
        let target = format!("node/{node}");
        for (words, right, group) in [
            (
                vec!["force-delete", "pod/web-1", "-n", namespace],
                format!("get pods in namespace {namespace}"),
                "operators",
            ),
            (
                vec!["force-delete", "-l", "app=web", "-n", namespace],
                format!("list pods in namespace {namespace}"),
                "operators",
            ),
            (
                vec!["force-delete", &target],
                "list pods".to_owned(),
                "operators",
            ),
            (vec!["status", "--pods"], "list nodes".to_owned(), "users"),
            (
                vec!["status", "--pods", node],
                "get nodes".to_owned(),
                "users",
            ),
        ] {
            let run = scene.cluster.maint(words).kubeconfig(&user).run();
            assert_eq!(run.code, 1, "{run}");
            let hint = format!(
                "hint: ask an administrator for permission to {right}, for example with the group \
                 kubectl-maint:{group}\n"
            );
            assert!(run.stderr.ends_with(&hint), "{run}");
        }
    });
}

#[test]
fn a_missing_right_is_told_before_anything_is_tried() {
    scene("powerless", |scene| {
        scene.harmless_pod("web-1");
        let user = scene.user("dev", &[pods(&["get"])]);
        let levels = scene.levels_for(&user, "web-1");
        levels.are(&[("rights", Some("Blocker"))]);
        assert_eq!(
            levels.words("rights"),
            "you do not have permission to delete pods"
        );
        let confirmed = ["--accept-risk", "-m", "why"];
        let run = scene
            .force_delete("web-1", &confirmed)
            .kubeconfig(&user)
            .run();
        assert_eq!(run.code, 6, "{run}");
    });
}

#[test]
fn who_may_not_make_a_lease_that_is_missing_does_not_know_of_it() {
    scene("makeless", |scene| {
        scene.harmless_pod("web-1");
        let rules = [
            pods(&["get", "delete"]),
            Rule::new("coordination.k8s.io", &["leases"], &["get", "patch"]),
        ];
        let user = scene.user("dev", &rules);
        let report = || scene.levels_for(&user, "web-1");
        let levels = report();
        levels.are(&[("lease", Some("Unread"))]);
        let words = levels.words("lease");
        assert!(words.contains("no permission to create leases"), "{words}");
        scene.cluster.released(&scene.node);
        report().are(&[("lease", Some("Ok"))]);
    });
}

#[test]
fn a_lock_that_nobody_promises_is_unknown() {
    scene("promised", |scene| {
        scene.harmless_pod("web-1");
        let proxy = scene
            .cluster
            .proxy_for(Treatment::Answer(503, None), |_, path| {
                path.contains("/selfsubjectaccessreviews")
            });
        scene
            .levels_for(&proxy.kubeconfig, "web-1")
            .are(&[("lease", Some("Unread"))]);
    });
}

#[test]
fn a_lock_that_is_refused_only_when_it_is_taken_stops_it_unless_that_was_named() {
    scene("lockless", |scene| {
        scene.harmless_pod("web-1");
        scene.cluster.released(&scene.node);
        let proxy = scene
            .cluster
            .proxy_for(Treatment::Answer(403, None), |method, _| {
                *method == Method::PATCH
            });
        let force_delete = |confirm| {
            scene
                .force_delete("web-1", &[confirm, "-m", "why"])
                .kubeconfig(&proxy.kubeconfig)
                .run()
        };
        let run = force_delete("--accept-risk");
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("risks not accepted: unread: "), "{run}");
        assert!(scene.is_there("web-1"));
        let run = force_delete("--accept-risk=unread");
        assert_eq!(run.code, 0, "{run}");
        assert!(
            run.stderr.contains("is not locked during the deletion: "),
            "{run}"
        );
        assert!(!scene.is_there("web-1"));
    });
}

#[test]
fn what_does_not_answer_is_unknown_too() {
    scene("mute", |scene| {
        scene.harmless_pod("web-1");
        let proxy = scene
            .cluster
            .proxy_for(Treatment::Answer(503, None), |_, path| {
                path.contains("/poddisruptionbudgets") || path.contains("/kube-node-lease/")
            });
        let levels = scene.levels_for(&proxy.kubeconfig, "web-1");
        levels.are(&[
            ("pdb", Some("Unread")),
            ("node-alive", Some("Unread")),
            ("mass-loss", Some("Unread")),
            ("lease", Some("Ok")),
        ]);
        let words = levels.words("pdb");
        assert!(
            words.contains("Error from server or proxy (ServiceUnavailable)"),
            "{words}"
        );
    });
}
