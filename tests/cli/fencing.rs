//! `fence` and `unfence`: lost answers, and changes during a write. Also what their hints say. All other tests of
//! fencing are in tests/fencing.

mod machine;
mod webhooks;

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Cluster, Treatment, ago, holder_of, in_memory, on_one, on_real};

const HEARTBEATS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Creates an unreachable node and a healthy one, in a zone of their own.
pub(crate) fn unreachable(cluster: &Cluster) -> String {
    let zone = json!({"topology.kubernetes.io/zone": cluster.name("zone")});
    cluster.node_with("worker-2", &zone, &json!({}));
    let node = cluster.node_with("worker-1", &zone, &json!({}));
    let status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "Unknown"}],
        "nodeInfo": {"bootID": "boot-1"},
    }});
    cluster.patch(&format!("/api/v1/nodes/{node}/status"), &status);
    cluster.create(
        HEARTBEATS,
        &json!({"metadata": {"name": node}, "spec": {"renewTime": ago(300)}}),
    );
    node
}

/// Sets the age of the kubelet's last heartbeat, in seconds. The Node object does not change.
fn beats(cluster: &Cluster, node: &str, age: i64) {
    let beat = json!({"spec": {"renewTime": ago(age)}});
    cluster.patch(&format!("{HEARTBEATS}/{node}"), &beat);
}

/// Whether the Node has a fencing record.
fn is_recorded(cluster: &Cluster, node: &str) -> bool {
    let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
    seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"].is_string()
}

/// Whether this is a write to a Node that is not about the held label.
fn is_write(method: &Method, path: &str) -> bool {
    let is_label = path.contains("fieldManager=kubectl-maint-node-keys");
    method == Method::PATCH && path.starts_with("/api/v1/nodes/") && !is_label
}

/// Keeps writes to Nodes until the test lets them pass.
fn keeps(method: &Method, path: &str) -> Treatment {
    match is_write(method, path) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// Lets writes to Nodes pass, but loses the answers.
fn loses(method: &Method, path: &str) -> Treatment {
    match is_write(method, path) {
        true => Treatment::LoseAnswer,
        false => Treatment::Pass,
    }
}

#[test]
fn a_lost_answer_ends_as_the_success_that_it_was() {
    on_real("fence-lost", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(loses);
        let fence = ["fence", &node, "--powered-off=dark"];
        let run = cluster
            .maint(fence)
            .kubeconfig(&proxy.kubeconfig)
            .succeeds();
        let fenced = format!("node/{node} fenced by alice@bastion, powered off: dark\n");
        assert_eq!(run.stdout, fenced);
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        assert!(seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"].is_string());
        assert_eq!(
            holder_of(cluster, &node).as_deref(),
            Some("kubeadm:alice@bastion")
        );

        beats(cluster, &node, 0);
        let restarted = json!({"status": {"nodeInfo": {"bootID": "boot-2"}}});
        cluster.patch(&format!("/api/v1/nodes/{node}/status"), &restarted);
        let unfence = cluster.maint(["unfence", &node]);
        let run = unfence.kubeconfig(&proxy.kubeconfig).succeeds();
        assert_eq!(run.stdout, format!("node/{node} unfenced\n"));
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        assert!(seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"].is_null());
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn a_hook_is_run_once_though_answers_are_lost() {
    on_real("hook-lost", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(loses);
        let ran = cluster.directory().join(format!("{node}-ran"));
        let script = format!("echo once >> '{}'", ran.display());
        let fence = ["fence", &node, "--", "sh", "-c", &script];
        cluster
            .maint(fence)
            .kubeconfig(&proxy.kubeconfig)
            .succeeds();
        assert!(is_recorded(cluster, &node));
        assert_eq!(std::fs::read_to_string(ran).expect("it ran"), "once\n");
    });
}

/// The kubelet may hang, or its clock may be wrong. The message says only what is known.
#[test]
fn a_suspect_that_has_stopped_reporting_is_not_said_to_report() {
    in_memory("fence-suspect", |cluster| {
        let node = unreachable(cluster);
        for (age, status) in [(300, "Unknown"), (0, "True")] {
            beats(cluster, &node, age);
            let ready = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
            cluster.patch(&format!("/api/v1/nodes/{node}/status"), &ready);
            let fence = ["fence", &node, "--suspect", "--timeout=0", "--", "true"];
            let run = cluster.maint(fence).run();
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("error: not confirmed"), "{run}");
            let says = run.stderr.contains("still reports to Kubernetes");
            assert_eq!(says, status == "True", "{run}");
        }
    });
}

#[test]
fn inside_with_the_hint_keeps_the_hook() {
    in_memory("fence-inside", |cluster| {
        let node = unreachable(cluster);
        let outer = "alice@bastion/with-7";
        cluster.maint(["acquire", &node]).holder(outer).succeeds();
        let fence = cluster.maint(["fence", &node, "--", "true"]);
        assert_snapshot!(fence.env("MAINT_HOLDER", outer).run(), @"
        $ kubectl maint fence worker-1 -- true
        -- stderr
        error: cannot fence node/worker-1: locked by alice@bastion/with-7 (since [time], until [time], [length] left, renewed while its command runs)
        hint: this runs inside `with`, which has the lock; act as its holder: add `--holder alice@bastion/with-7` before `--`
        -- exit code 3
        ");
    });
}

/// The Node changes between the last read and the write, so the write is refused.
#[test]
fn a_node_that_reports_while_its_record_is_written_is_not_fenced() {
    on_real("fence-reports", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(keeps);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        let running = fence.kubeconfig(&proxy.kubeconfig).start();
        let kept = proxy.kept();
        beats(cluster, &node, 0);
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        cluster.patch(&format!("/api/v1/nodes/{node}/status"), &ready);
        assert_eq!(kept.passes(), 409);
        let run = running.ends();
        assert_eq!(run.code, 6, "{run}");
        let message = format!("cannot fence node/{node}: its kubelet is alive (last heartbeat ");
        assert!(run.stderr.contains(&message), "{run}");
        assert!(!is_recorded(cluster, &node));
        assert_eq!(holder_of(cluster, &node), None);
    });
}

/// The node is alive when it is read again, so its hold is released.
#[test]
fn a_node_that_comes_back_while_it_is_put_on_hold_is_not_fenced() {
    on_real("fence-late", |cluster| {
        let node = unreachable(cluster);
        cluster.lease(&node, &json!({}));
        let proxy = cluster.proxy_for_writes(&[Treatment::Keep]);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        let running = fence.kubeconfig(&proxy.kubeconfig).start();
        let kept = proxy.kept();
        beats(cluster, &node, 0);
        assert_eq!(kept.passes(), 200);
        let run = running.ends();
        assert_eq!(run.code, 6, "{run}");
        let message = format!("cannot fence node/{node}: its kubelet is alive (last heartbeat ");
        assert!(run.stderr.contains(&message), "{run}");
        assert!(!is_recorded(cluster, &node));
        assert_eq!(holder_of(cluster, &node), None);
    });
}

/// The command is killed after it wrote the hold and before it wrote the record. The next run recognizes its own hold
/// and continues.
#[test]
fn after_a_crash_between_hold_and_record_it_continues() {
    on_real("fence-killed", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(keeps);
        let fence = || cluster.maint(["fence", &node, "--powered-off=dark"]);
        // The kept write is dropped, so it never reaches the server.
        drop(proxy.kills(fence()));
        assert!(!is_recorded(cluster, &node));
        let holder = || holder_of(cluster, &node);
        assert_eq!(holder().as_deref(), Some("kubeadm:alice@bastion"));
        let run = fence().succeeds();
        assert!(!run.stderr.contains("on hold"), "it is already: {run}");
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        let record = &seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"];
        let record = record.as_str().expect("a record");
        assert!(
            record.contains(r#""hold":""#),
            "it is the fencing's: {record}"
        );
        assert_eq!(holder().as_deref(), Some("kubeadm:alice@bastion"));
    });
}

/// A heartbeat does not change the Node. If it comes between the last read and the write, the node is fenced, and the
/// output reports the heartbeat at once.
#[test]
fn a_heartbeat_during_the_write_of_the_record_is_reported_at_once() {
    on_real("fence-beats", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(keeps);
        // Repeated because a controller may change the Node in between, which refuses the write.
        let run = loop {
            let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
            let running = fence.kubeconfig(&proxy.kubeconfig).start();
            let kept = proxy.kept();
            beats(cluster, &node, 0);
            let code = kept.passes();
            let run = running.ends();
            assert_eq!(run.code, 6, "{run}");
            match code {
                200 => break run,
                code => assert_eq!(code, 409, "{run}"),
            }
            beats(cluster, &node, 300);
        };
        let message = format!("node/{node} is fenced, but its kubelet is alive");
        assert!(run.stderr.contains(&message), "{run}");
        assert!(is_recorded(cluster, &node));
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}

/// Any controller may write to the Node first.
#[test]
fn a_node_that_keeps_changing_is_not_written() {
    in_memory("fence-changing", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy(keeps);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        let run = fence.kubeconfig(&proxy.kubeconfig).start();
        for change in 0..10 {
            let kept = proxy.kept();
            let label = json!({"metadata": {"labels": {"changed": change.to_string()}}});
            cluster.patch(&format!("/api/v1/nodes/{node}"), &label);
            assert_eq!(kept.passes(), 409);
        }
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint fence worker-1 --powered-off=dark
        -- stderr
        lease/worker-1 created
        node/worker-1 on hold until it is unfenced
        node/worker-1: fencing hold ended
        error: could not update node/worker-1: it keeps changing (Error from server (Conflict): Operation cannot be fulfilled on nodes "worker-1": the object has been modified; please apply your changes to the latest version and try again)
        -- exit code 1
        "#);
        assert!(!is_recorded(cluster, &node));
    });
}

#[test]
fn a_node_whose_writes_are_never_answered_may_be_changed() {
    in_memory("fence-unanswered", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy_for(Treatment::Foreign(504), is_write);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        assert_snapshot!(fence.kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint fence worker-1 --powered-off=dark
        -- stderr
        lease/worker-1 created
        node/worker-1 on hold until it is unfenced
        error: unknown whether node/worker-1 was fenced: the write may still take effect (Error from server or proxy (GatewayTimeout): the proxy says so); its lock is kept
        hint: check with `kubectl maint status worker-1`; to continue, run the command again
        -- exit code 1
        ");
    });
}

/// Kubernetes limits the total size of all annotations of a Node.
#[test]
fn a_node_without_room_for_the_record_is_not_powered_off() {
    on_one("fence-long", |cluster| {
        let node = unreachable(cluster);
        let others = "x".repeat(256 * 1024 - 1000);
        let annotations = json!({"metadata": {"annotations": {"example.com/others": others}}});
        cluster.patch(&format!("/api/v1/nodes/{node}"), &annotations);
        let run = cluster
            .maint(["fence", &node, "--", "/bin/echo", "off"])
            .run();
        assert_eq!(run.code, 1, "{run}");
        assert!(!run.stderr.contains("off\n"), "{run}");
        assert!(run.stderr.contains("annotations"), "{run}");
        assert!(!is_recorded(cluster, &node));
    });
}

#[test]
fn a_hook_that_a_signal_ends_proves_nothing() {
    in_memory("fence-killed", |cluster| {
        let node = unreachable(cluster);
        let hook = ["fence", &node, "--", "/bin/sh", "-c", "kill -KILL $$"];
        assert_snapshot!(cluster.maint(hook).run(), @r#"
        $ kubectl maint fence worker-1 -- /bin/sh -c "kill -KILL $$"
        -- stderr
        lease/worker-1 created
        node/worker-1 on hold until it is unfenced
        node/worker-1: fencing hold ended
        error: node/worker-1 was not fenced: the hook was killed by SIGKILL
        hint: check the machine of node/worker-1: the hook may have changed it; it printed nothing
        -- exit code 1
        "#);
    });
}

#[test]
fn describe_says_what_to_run_for_an_unreachable_and_a_fenced_node() {
    in_memory("fence-describe", |cluster| {
        let node = unreachable(cluster);
        let describe = || cluster.maint(["describe", "node", &node]).succeeds();
        let run = describe();
        let said = "Power it off and move its pods:  kubectl maint fence worker-1 -- HOOK\n";
        assert!(run.to_string().contains(said), "{run}");
        cluster
            .maint(["fence", &node, "--powered-off=dark", "--timeout=0"])
            .run();
        let run = describe();
        let said = "After its restart:        kubectl maint unfence worker-1\n";
        assert!(run.to_string().contains(said), "{run}");
        assert_snapshot!(cluster.maint(["unfence", &node]).run(), @"
        $ kubectl maint unfence worker-1
        -- stderr
        error: cannot unfence node/worker-1: it is still unreachable
        hint: start it first, or let a hook start it with `kubectl maint unfence worker-1 -- HOOK`
        -- exit code 6
        ");
    });
}

#[test]
fn a_node_that_the_control_plane_calls_ready_is_not_fenced() {
    in_memory("fence-ready", |cluster| {
        let node = unreachable(cluster);
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        cluster.patch(&format!("/api/v1/nodes/{node}/status"), &ready);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        assert_snapshot!(fence.run(), @"
        $ kubectl maint fence worker-1 --powered-off=dark
        -- stderr
        error: cannot fence node/worker-1: Kubernetes does not report it unreachable yet: its Ready condition is still True
        hint: wait until Ready is Unknown: `kubectl wait node/worker-1 --for=condition=Ready=Unknown --timeout=5m`
        -- exit code 6
        ");
        beats(cluster, &node, 0);
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        let run = fence.run();
        let hint = "hint: drain it with `kubectl drain worker-1 --ignore-daemonsets`; if it hangs although it \
                    reports, fence it with `kubectl maint fence worker-1 --suspect -- HOOK`\n";
        assert!(run.to_string().contains(hint), "{run}");
        assert_eq!(run.code, 6, "{run}");
    });
}

#[test]
fn a_deletion_without_the_right_to_lock_names_the_risk() {
    in_memory("delete-forbidden", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy_for(Treatment::Refuse(403, "not you"), |method, path| {
            method != Method::GET && path.contains("kube-node-maintenance/leases")
        });
        let target = format!("node/{node}");
        let delete = ["force-delete", &target, "--accept-risk=none", "-m", "dark"];
        let delete = cluster.maint(delete).kubeconfig(&proxy.kubeconfig);
        assert_snapshot!(delete.run(), @"
        $ kubectl maint force-delete node/worker-1 --accept-risk=none -m dark
        context [context], server [server], user sandbox
        node/worker-1
          info     node-unreachable  the node is unreachable, and its last heartbeat is 5m old: its pods may still be running
          6 checks ok
        -- stderr
        error: could not lock the node: Error from server (Forbidden): not you; nothing was deleted
        hint: to accept the risk `unread` and delete without the lock: `kubectl maint force-delete node/worker-1 --accept-risk=unread -m dark`
        -- exit code 6
        ");
    });
}

#[test]
fn without_the_right_to_see_attached_volumes_it_waits_for_the_pods() {
    in_memory("fence-volumes", |cluster| {
        let node = unreachable(cluster);
        let proxy = cluster.proxy_for(Treatment::Refuse(403, "not you"), |_, path| {
            path.contains("/volumeattachments")
        });
        let fence = cluster.maint(["fence", &node, "--powered-off=dark"]);
        assert_snapshot!(fence.kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint fence worker-1 --powered-off=dark
        node/worker-1 fenced by alice@bastion, powered off: dark
        -- stderr
        lease/worker-1 created
        node/worker-1 on hold until it is unfenced
        Warning: node/worker-1 is fenced, but it is unknown which volumes will be detached: no permission to list volumeattachments.storage.k8s.io; waiting only for its pods
        -- exit code 0
        ");
    });
}

/// The command may be stopped after it has read its lock.
#[test]
fn a_record_is_not_written_under_a_lock_that_expired_since_it_was_read() {
    in_memory("fence-expired", |cluster| {
        let node = unreachable(cluster);
        // It expires after ten more seconds.
        let renewed = ago(8);
        cluster.lease(
            &node,
            &json!({
                "holderIdentity": "alice@bastion", "leaseDurationSeconds": 15,
                "acquireTime": renewed, "renewTime": renewed,
            }),
        );
        // The nodes of the zone are read after the lock.
        let is_kept = AtomicBool::new(false);
        let proxy = cluster.proxy_for(Treatment::Keep, move |_, path| {
            path.contains("includeObject=Metadata") && !is_kept.swap(true, Ordering::Relaxed)
        });
        let fence = ["fence", &node, "--powered-off=dark", "--request-timeout=1m"];
        let (running, kept) = proxy.holds_up(cluster.maint(fence));
        assert!(!is_recorded(cluster, &node));
        let status = || cluster.maint(["status", &node, "-o", "json"]).succeeds();
        assert_eq!(status().item()["state"], "Locked");
        while status().item()["state"] != "Expired" {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        kept.passes();
        let run = running.ends();
        assert_eq!(run.code, 0, "{run}");
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        let record = seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"].as_str();
        let record: Value = serde_json::from_str(record.expect("a record")).expect("JSON");
        assert!(record["hold"].is_string(), "{record} {run}");
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}
