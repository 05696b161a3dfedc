//! Warnings and errors about wrong clocks, missing rights, and namespaces that are deleted or
//! missing.

use http::Method;
use insta::assert_snapshot;
use serde_json::json;

use crate::support::Treatment::{Ahead, Answer, Pass, Refuse};
use crate::support::{holder_of, in_memory, on_both};

#[test]
fn a_local_clock_that_is_off() {
    on_both("odd-clock", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let run = |seconds: i64, words: &[&str]| {
            let proxy = cluster.proxy(move |_, _| Ahead(seconds));
            let run = cluster.maint(words).kubeconfig(&proxy.kubeconfig).run();
            // The difference that is shown may be wrong by one second.
            let by = |text: String| {
                text.replace("is 9s ", "is 10s ")
                    .replace("is 11s ", "is 10s ")
            };
            by(run.to_string())
        };
        // The server's time is used, and a warning says so once.
        assert_snapshot!(run(10, &["acquire", &node]), @"
        $ kubectl maint acquire worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        Warning: the local clock is 10s behind the API server's; server time is used
        -- exit code 0
        ");
        assert_snapshot!(run(-10, &["release", &node]), @"
        $ kubectl maint release worker-1
        node/worker-1 released
        -- stderr
        Warning: the local clock is 10s ahead of the API server's; server time is used
        -- exit code 0
        ");
        // A difference of 2 s is within the limit of 3 s, so there is no warning.
        assert_snapshot!(run(2, &["release", &node]), @"
        $ kubectl maint release worker-1
        node/worker-1 already free
        -- exit code 0
        ");
    });
}

#[test]
fn a_quota_is_not_taken_for_a_missing_right() {
    in_memory("quota", |cluster| {
        let node = cluster.node("worker-1");
        // The quota admission plugin of Kubernetes words it like this.
        let proxy = cluster.proxy(|method, _| match *method {
            Method::POST => Refuse(
                403,
                "leases.coordination.k8s.io \"worker-1\" is forbidden: exceeded quota: few, requested: \
                 count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=3, limited: \
                 count/leases.coordination.k8s.io=3",
            ),
            _ => Pass,
        });
        let acquire = cluster.maint(["acquire", &node]);
        assert_snapshot!(acquire.kubeconfig(&proxy.kubeconfig).run(), @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        Error from server (Forbidden): leases.coordination.k8s.io "worker-1" is forbidden: exceeded quota: few, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=3, limited: count/leases.coordination.k8s.io=3
        -- exit code 1
        "#);
    });
}

#[test]
fn nodes_that_may_not_be_read() {
    on_both("odd-nodes", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let proxy = cluster.proxy(|_, path| {
            if path.starts_with("/api/v1/nodes") {
                Answer(403, None)
            } else {
                Pass
            }
        });
        let run = |words: &[&str]| {
            let maint = cluster.maint(words).kubeconfig(&proxy.kubeconfig);
            maint.run()
        };
        let [one, two] = &nodes;
        // The command works, and a warning says which check was skipped.
        assert_snapshot!(run(&["acquire", one]), @"
        $ kubectl maint acquire worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        Warning: no permission to read node/worker-1: did not check whether it exists, is ready or cordoned
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
        assert_eq!(run(&["acquire", one, two, "--reentry"]).code, 0);
        let hold = run(&["hold", one, two, "-m", "rack moves"]);
        assert_eq!(hold.code, 0, "{hold}");
        assert_eq!(
            hold.stderr.matches("without the held label").count(),
            2,
            "{hold}"
        );
        let item = &run(&["status", one, "-o", "json"]).item();
        assert_eq!(
            (&item["state"], item.get("nodeStatus")),
            (&json!("OnHold"), None)
        );
        assert_eq!(run(&["unhold", one]).code, 0);
    });
}

#[test]
fn a_namespace_that_is_being_deleted() {
    in_memory("odd-namespace", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        cluster.maint(["acquire", &nodes[0]]).succeeds();
        let namespace = "/api/v1/namespaces/kube-node-maintenance";
        // The namespace stays in Terminating because of this finalizer.
        let finalizers = json!({"metadata": {"finalizers": ["example.com/stays"]}});
        cluster.patch(namespace, &finalizers);
        cluster.delete(namespace);
        assert_snapshot!(cluster.maint(["acquire", &nodes[1]]).run(), @"
        $ kubectl maint acquire worker-2
        -- stderr
        error: namespace kube-node-maintenance is being deleted, and every lock with it
        hint: wait until it is gone, then run `kubectl maint install`
        -- exit code 1
        ");
    });
}

#[test]
fn an_empty_holder_variable_counts_as_absent() {
    in_memory("odd-holder", |cluster| {
        let node = cluster.node("worker-1");
        let maint = cluster.maint(["acquire", &node]);
        let run = maint.holder("").env("USER", "carol").run();
        assert_eq!(run.code, 0, "{run}");
        let holder = holder_of(cluster, &node).expect("it is held");
        assert!(holder.starts_with("carol@"), "{holder}");
    });
}

#[test]
fn the_last_value_of_a_repeated_flag_counts() {
    in_memory("odd-twice", |cluster| {
        let node = cluster.node("worker-1");
        let line = [
            "-v=8",
            "acquire",
            &node,
            "--duration=5m",
            "--duration=10m",
            "-v=0",
        ];
        let run = cluster.maint(line).run();
        assert_eq!(run.code, 0, "{run}");
        assert!(!run.stderr.contains("GET "), "{run}");
        assert_eq!(cluster.lease_of(&node)["spec"]["leaseDurationSeconds"], 600);
    });
}
