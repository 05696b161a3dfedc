//! Admission webhooks that change or refuse what fencing writes to the Node.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use http::Method;
use insta::assert_snapshot;

use serde_json::json;

use super::{beats, is_recorded, is_write, unreachable};
use crate::support::{Cluster, Treatment, events_of, holder_of, in_memory, on_one};

/// The node was restarted, and reports again.
fn comes_back(cluster: &Cluster, node: &str) {
    beats(cluster, node, 0);
    let restarted = json!({"status": {"nodeInfo": {"bootID": "boot-2"}}});
    cluster.patch(&format!("/api/v1/nodes/{node}/status"), &restarted);
}

/// The command tries twice, reports it once, and keeps its hold, because the taint alone has
/// already moved the pods.
#[test]
fn a_record_that_a_webhook_removes_ends_in_an_error() {
    on_one("fence-unrecorded", |cluster| {
        let node = unreachable(cluster);
        let record = "/metadata/annotations/kubectl-maint.dev~1fenced";
        let proxy = cluster.proxy_for(Treatment::Without(record), is_write);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        assert_snapshot!(fence.kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint fence worker-1 --powered-off=dark
        node/worker-1 fenced by alice@bastion, powered off: dark
        -- stderr
        lease/worker-1 created
        node/worker-1 on hold until it is unfenced
        error: node/worker-1 does not stay fenced: its fencing record or its out-of-service taint was removed each time it was written, perhaps by an admission webhook; its lock is kept
        hint: check `kubectl get mutatingwebhookconfigurations`; then run the command again
        -- exit code 1
        ");
        assert!(!is_recorded(cluster, &node));
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
        let events = events_of(cluster, &node);
        assert_eq!(events.matches("NodeFenced").count(), 1, "{events}");
    });
}

#[test]
fn a_taint_that_a_webhook_removes_ends_in_an_error() {
    in_memory("fence-untainted", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy_for(Treatment::Without("/spec"), is_write);
        let fence = cluster.maint(["fence", &node, "--", "true"]);
        let run = fence.kubeconfig(&proxy.kubeconfig).run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("does not stay fenced"), "{run}");
        assert!(is_recorded(cluster, &node));
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}

/// The fencing hold stays too, because the node is still fenced. A dry run reports this beforehand.
#[test]
fn a_taint_that_a_webhook_keeps_is_not_called_unfenced() {
    on_one("unfence-tainted", |cluster| {
        let node = unreachable(cluster);
        let fence = ["fence", &node, "--powered-off=dark"];
        cluster.maint(fence).succeeds();
        comes_back(cluster, &node);
        let proxy = cluster.proxy_for(Treatment::Without("/spec"), is_write);
        let unfence = cluster.maint(["unfence", &node]);
        assert_snapshot!(unfence.kubeconfig(&proxy.kubeconfig).run(), @r#"
        $ kubectl maint unfence worker-1
        -- stderr
        error: node/worker-1 is still fenced: its fencing record or its out-of-service taint is still there after the write that removes both, perhaps because of an admission webhook; its lock is kept
        hint: check `kubectl get mutatingwebhookconfigurations`; then run the command again
        -- exit code 1
        "#);
        assert!(!is_recorded(cluster, &node));
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
        let events = events_of(cluster, &node);
        assert_eq!(events.matches("NodeUnfenced").count(), 0, "{events}");
        let unfence = ["unfence", &node, "--accept-risk=boot-id", "-m=why"];
        cluster.maint(unfence).succeeds();
        assert_eq!(holder_of(cluster, &node), None);
    });
}

/// Another tool puts the taint back before the command ends the hold.
#[test]
fn a_taint_that_is_put_back_at_once_is_not_called_unfenced() {
    on_one("unfence-tainted-again", |cluster| {
        let node = unreachable(cluster);
        let fence = ["fence", &node, "--powered-off=dark"];
        cluster.maint(fence).succeeds();
        comes_back(cluster, &node);
        let path = format!("/api/v1/nodes/{node}");
        let (read, is_written) = (path.clone(), AtomicBool::new(false));
        let proxy = cluster.proxy(move |method, sent| {
            is_written.fetch_or(is_write(method, sent), Relaxed);
            match *method == Method::GET && sent.starts_with(&read) && is_written.load(Relaxed) {
                true => Treatment::Keep,
                false => Treatment::Pass,
            }
        });
        let (run, kept) = proxy.holds_up(cluster.maint(["unfence", &node]));
        let taint = json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"});
        cluster.patch(&path, &json!({"spec": {"taints": [taint]}}));
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!((run.code, &run.stdout[..]), (1, ""), "{run}");
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}

/// The webhook answers 409, as for a changed Node, but the Node has not changed.
#[test]
fn a_409_from_a_webhook_is_a_refusal() {
    in_memory("fence-refused", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy_for(Treatment::Answer(409, None), is_write);
        let ran = cluster.directory().join(format!("{node}-ran"));
        let hook = |verb: &str| {
            let line = [verb, &node, "--", "touch", ran.to_str().expect("a path")];
            let run = cluster.maint(line).env("PATH", "/usr/bin:/bin");
            let run = run.kubeconfig(&proxy.kubeconfig).run();
            assert!(!ran.exists(), "{run}");
            let refused = "Error from server (Conflict): the proxy says so\n";
            assert!(run.stderr.ends_with(refused), "{run}");
        };
        hook("fence");
        assert_eq!(holder_of(cluster, &node), None);

        let fence = || cluster.maint(["fence", &node, "--powered-off=dark"]);
        assert_snapshot!(fence().kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint fence worker-1 --powered-off=dark
        -- stderr
        node/worker-1 on hold until it is unfenced
        node/worker-1: fencing hold ended
        Error from server (Conflict): the proxy says so
        -- exit code 1
        ");
        fence().succeeds();
        hook("unfence");
        assert!(is_recorded(cluster, &node));
    });
}

#[test]
fn a_hook_whose_record_gets_errors_is_not_run() {
    in_memory("fence-errors", |cluster| {
        let node = unreachable(cluster);
        let fence = |code| {
            let is_dry_run =
                |method: &Method, path: &str| is_write(method, path) && path.contains("dryRun=All");
            let proxy = cluster.proxy_for(Treatment::Answer(code, None), is_dry_run);
            let fence = cluster.maint(["fence", &node, "--", "echo", "it ran"]);
            let fence = fence.env("PATH", "/usr/bin:/bin");
            fence.kubeconfig(&proxy.kubeconfig).run()
        };
        let run = fence(404);
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("the proxy says so"), "{run}");
        assert_snapshot!(fence(500), @r#"
        $ kubectl maint fence worker-1 -- echo "it ran"
        -- stderr
        node/worker-1 on hold until it is unfenced
        node/worker-1: fencing hold ended
        Error from server or proxy (InternalServerError): the proxy says so
        -- exit code 1
        "#);
        assert!(!is_recorded(cluster, &node));
    });
}

/// Whether this is a write to the Lease of a lock.
fn is_lease_write(method: &Method, path: &str) -> bool {
    *method == Method::PATCH && path.contains("/kube-node-maintenance/leases/")
}

/// Whether the Node has a fencing record, the taint and the held label.
fn on_node(cluster: &Cluster, node: &str) -> [bool; 3] {
    let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
    let mut taints = seen["spec"]["taints"].as_array().into_iter().flatten();
    [
        is_recorded(cluster, node),
        taints.any(|taint| taint["key"] == "node.kubernetes.io/out-of-service"),
        seen["metadata"]["labels"]["kubectl-maint.dev/held"].is_string(),
    ]
}

/// A policy of the cluster may refuse it, or the role of the user.
#[test]
fn a_node_whose_hold_may_not_be_ended_stays_fenced() {
    on_one("unfence-refused", |cluster| {
        let node = unreachable(cluster);
        cluster
            .maint(["fence", &node, "--powered-off=dark"])
            .succeeds();
        comes_back(cluster, &node);
        let lease = cluster.lease_of(&node);
        let proxy = cluster.proxy_for(Treatment::Refuse(403, "not you"), is_lease_write);
        let ran = cluster.directory().join(format!("{node}-ran"));
        let hook = ["--", "touch", ran.to_str().expect("a path")];
        for hook in [&[][..], &hook] {
            let unfence = cluster.maint(["unfence", &node]).args(hook);
            let unfence = unfence.env("PATH", "/usr/bin:/bin");
            let run = unfence.kubeconfig(&proxy.kubeconfig).run();
            assert_eq!((run.code, &*run.stdout), (1, ""), "{run}");
            assert!(run.stderr.contains("(Forbidden): not you\n"), "{run}");
            assert_eq!(on_node(cluster, &node), [true; 3], "{run}");
            assert_eq!(cluster.lease_of(&node), lease, "{run}");
            assert!(!ran.exists(), "{run}");
        }
        cluster.maint(["unfence", &node]).succeeds();
        assert_eq!(on_node(cluster, &node), [false; 3]);
        assert_eq!(holder_of(cluster, &node), None);
    });
}

/// The hold that a run placed and may not end keeps its label.
#[test]
fn a_hold_of_a_failed_fencing_that_may_not_be_ended_keeps_its_label() {
    in_memory("fence-end-refused", |cluster| {
        let node = unreachable(cluster);
        cluster.released(&node);
        let placed = AtomicBool::new(false);
        let proxy = cluster.proxy(move |method, path| {
            match is_lease_write(method, path) && placed.swap(true, Relaxed) {
                true => Treatment::Refuse(403, "not you"),
                false => Treatment::Pass,
            }
        });
        let fence = cluster.maint(["fence", &node, "--", "false"]);
        let fence = fence.env("PATH", "/usr/bin:/bin");
        assert_snapshot!(fence.kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint fence worker-1 -- false
        -- stderr
        node/worker-1 on hold until it is unfenced
        Warning: could not end the hold on node/worker-1: Error from server (Forbidden): not you; end it with `kubectl maint unfence worker-1`
        error: node/worker-1 was not fenced: the hook failed with exit code 1
        hint: check the machine of node/worker-1: the hook may have changed it; it printed nothing
        -- exit code 1
        ");
        assert_eq!(on_node(cluster, &node), [false, false, true]);
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}
