//! Users with few rights: what they can't read must be confirmed, and never counts as healthy.

use control_plane::Rule;
use serde_json::json;

use crate::fixture::fixture;
use crate::support::Treatment;

fn pods(verbs: &[&str]) -> Rule {
    Rule::new("", &["pods"], verbs)
}

#[test]
fn with_rights_on_pods_alone_everything_else_is_unknown_and_it_works() {
    fixture("owner", |fixture| {
        fixture.ended_member_with_volume();
        let user = fixture.user("dev", &[pods(&["get", "delete"])]);
        let levels = fixture.levels_for(&user, "web-0");
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
            ("volume-deleted", Some("Unread")),
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

        let all = [&confirm, "-m", "the rack burnt"];
        let run = fixture
            .force_delete("web-0", &all)
            .kubeconfig(&user)
            .succeeds();
        assert!(run.stderr.contains("could not post an Event"), "{run}");
        assert!(!fixture.is_there("web-0"));
    });
}

#[test]
fn a_ready_pod_shows_that_its_node_is_alive() {
    fixture("ready", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.cluster.patch(
            &format!("{}/status", fixture.pod_path("web-1")),
            &json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        let user = fixture.user("dev", &[pods(&["get", "delete"])]);
        fixture
            .levels_for(&user, "web-1")
            .are(&[("node-alive", Some("Blocker"))]);
    });
}

#[test]
fn without_the_right_to_read_the_target_the_right_is_named() {
    fixture("nobody", |fixture| {
        let user = fixture.user("dev", &[pods(&["watch"])]);
        let (namespace, node) = (&*fixture.namespace, &*fixture.node);
        let target = format!("node/{node}");
        for (words, right) in [
            (
                vec!["force-delete", "pod/web-1", "-n", namespace],
                format!("get pods in namespace {namespace}"),
            ),
            (
                vec!["force-delete", "-l", "app=web", "-n", namespace],
                format!("list pods in namespace {namespace}"),
            ),
            (vec!["force-delete", &target], "list pods".to_owned()),
            (vec!["status", "--pods"], "list nodes".to_owned()),
            (vec!["status", "--pods", node], "get nodes".to_owned()),
        ] {
            let run = fixture.cluster.maint(words).kubeconfig(&user).run();
            assert_eq!(run.code, 1, "{run}");
            let hint = format!(
                "hint: ask an administrator for permission to {right}; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n"
            );
            assert!(run.stderr.ends_with(&hint), "{run}");
        }
    });
}

#[test]
fn a_missing_right_is_reported_before_any_write() {
    fixture("powerless", |fixture| {
        fixture.harmless_pod("web-1");
        let user = fixture.user("dev", &[pods(&["get"])]);
        let levels = fixture.levels_for(&user, "web-1");
        levels.are(&[("rights", Some("Blocker"))]);
        assert_eq!(
            levels.words("rights"),
            "you do not have permission to delete pods"
        );
        let confirmed = ["--accept-risk", "-m", "why"];
        let run = fixture
            .force_delete("web-1", &confirmed)
            .kubeconfig(&user)
            .run();
        assert_eq!(run.code, 6, "{run}");
    });
}

#[test]
fn without_the_right_to_create_a_missing_lease_is_unknown() {
    fixture("makeless", |fixture| {
        fixture.harmless_pod("web-1");
        let rules = [
            pods(&["get", "delete"]),
            Rule::new("coordination.k8s.io", &["leases"], &["get", "patch"]),
        ];
        let user = fixture.user("dev", &rules);
        let report = || fixture.levels_for(&user, "web-1");
        let levels = report();
        levels.are(&[("lease", Some("Unread"))]);
        let words = levels.words("lease");
        assert!(words.contains("no permission to create leases"), "{words}");
        fixture.cluster.released(&fixture.node);
        report().are(&[("lease", Some("Ok"))]);
    });
}

#[test]
fn reads_without_an_answer_are_unknown_too() {
    fixture("mute", |fixture| {
        fixture.harmless_pod("web-1");
        let proxy = fixture
            .cluster
            .proxy_for(Treatment::Answer(503, None), |_, path| {
                path.contains("/poddisruptionbudgets") || path.contains("/kube-node-lease/")
            });
        let levels = fixture.levels_for(&proxy.kubeconfig, "web-1");
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
