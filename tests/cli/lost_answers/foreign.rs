//! Answers that come from something between the client and the server, or that are cut short.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use insta::assert_snapshot;
use serde_json::Value;

use crate::support::Treatment::{Answer, CutAnswer, Foreign, Pass};
use crate::support::{on_both, on_one};

#[test]
fn a_release_that_was_lost_is_not_done_because_of_a_404_page() {
    on_one("foreign-release", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let seen = AtomicUsize::new(0);
        // The write never reaches the server, and the next read gets a 404 page of the proxy.
        let proxy = cluster.proxy(move |method, path| {
            let is_release = *method == Method::PATCH;
            if !path.contains("/leases") {
                return Pass;
            }
            match (seen.load(Ordering::SeqCst), is_release) {
                (0, true) => {
                    seen.store(1, Ordering::SeqCst);
                    Answer(502, None)
                }
                (1, false) => {
                    seen.store(2, Ordering::SeqCst);
                    Foreign(404)
                }
                _ => Pass,
            }
        });
        let release = cluster.maint(["release", &node]);
        assert_snapshot!(release.kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint release worker-1
        node/worker-1 released
        -- exit code 0
        ");
        assert_eq!(cluster.lease_of(&node)["spec"]["holderIdentity"], "");
    });
}

#[test]
fn a_404_page_is_not_a_free_node() {
    on_one("foreign-read", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let proxy = cluster.proxy_for(Foreign(404), |_, path| path.contains("/leases"));
        let through = |words: &[&str]| cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
        assert_snapshot!(through(&["release", &node]), @r#"
        $ kubectl maint release worker-1
        -- stderr
        error: no Kubernetes API server answered GET /apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases/worker-1: the answer has status 404 and begins with "the proxy says so"
        hint: check the server address, and any proxy or login page in between
        -- exit code 1
        "#);
        assert_eq!(through(&["status", &node]).code, 1);
        assert_eq!(through(&["acquire", &node]).code, 1);
        let proxy = cluster.proxy_for(Foreign(404), |_, path| path.contains("/pods/"));
        let through = |words: &[&str]| cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
        assert_eq!(
            through(&["force-delete", "pod/web-0", "-m", "it hangs"]).code,
            1
        );
    });
}

#[test]
fn a_list_that_was_cut_short_is_an_error() {
    on_both("foreign-cut", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        cluster.maint(["acquire"]).args(&nodes).succeeds();
        let proxy = cluster.proxy_for(CutAnswer, |_, path| {
            path.contains("kube-node-maintenance/leases?")
        });
        let through = |words: &[&str]| cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
        // The nodes are not reported as Free.
        let run = through(&["status"]);
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains(" was cut short\n"), "{run}");
        // No node is silently left out.
        assert_eq!(through(&["release", "--mine"]).code, 1);
        for node in &nodes {
            let holder: Value = cluster.lease_of(node)["spec"]["holderIdentity"].clone();
            assert_eq!(holder, "alice@bastion");
        }
        let proxy = cluster.proxy_for(CutAnswer, |_, path| path.contains("/api/v1/nodes?"));
        let through = |words: &[&str]| cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
        assert_eq!(through(&["acquire", "--all"]).code, 1);
        assert_eq!(through(&["status"]).code, 1);
        assert_eq!(through(&["status", "--pods"]).code, 1);
    });
}
