//! The option `status --pods`.

use std::sync::LazyLock;

use control_plane::Rule;
use insta::assert_snapshot;
use regex::Regex;
use serde_json::{Value, json};

use crate::support::{Cluster, Run, ago, in_memory, on_real, requests};

/// Creates a node that has sent no heartbeat for minutes. Its taint evicts pods that do not
/// tolerate it.
fn unreachable_node(cluster: &Cluster, short: &str) -> String {
    let name = cluster.name(short);
    let seconds = |time: String| format!("{}Z", time.split('.').next().expect("seconds"));
    let (unreachable, tainted) = (seconds(ago(740)), seconds(ago(108)));
    cluster.create(
        "/api/v1/nodes",
        &json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"taints": [{
                "key": "node.kubernetes.io/unreachable",
                "effect": "NoExecute",
                "timeAdded": tainted,
            }]},
            "status": {"conditions": [{
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastHeartbeatTime": unreachable,
                "lastTransitionTime": unreachable,
            }]},
        }),
    );
    name
}

fn namespace(cluster: &Cluster) -> String {
    let name = cluster.name("apps");
    cluster.create(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    );
    name
}

/// Creates a pod on `node`, or on none if that is empty. `change` is merged into the pod.
fn pod(cluster: &Cluster, namespace: &str, name: &str, node: &str, change: &Value) {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "example.com/main"}]},
    });
    if !node.is_empty() {
        pod["spec"]["nodeName"] = json!(node);
    }
    for part in ["metadata", "spec"] {
        for (field, value) in change[part].as_object().into_iter().flatten() {
            pod[part][field] = value.clone();
        }
    }
    cluster.create(&format!("/api/v1/namespaces/{namespace}/pods"), &pod);
}

fn owned_by(kind: &str, name: &str) -> Value {
    let owner = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": "2f4c9a5e-8f0b-4a94-9d53-0d7c6a1b2c3d",
        "controller": true,
    });
    json!([owner])
}

/// Repeats the run until no pod has any of its grace period left.
fn after_its_grace(run: impl Fn() -> Run) -> Run {
    for _ in 0..600 {
        let run = run();
        if !run.stdout.contains("of grace left") {
            return run;
        }
    }
    panic!("a second of grace does not end");
}

/// The output of a run, with all lengths of time replaced by the same text.
fn shown(run: &Run) -> String {
    static LENGTHS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(in |\+|Terminating, |Terminating )(\d+[dhms]){1,2}").expect("a pattern")
    });
    LENGTHS
        .replace_all(&run.to_string(), "${1}[length]")
        .into_owned()
}

#[test]
fn pods_on_an_unreachable_node_are_described() {
    on_real("stranded", |cluster| {
        let node = unreachable_node(cluster, "worker-1");
        let namespace = namespace(cluster);
        let forever = json!([{"operator": "Exists"}]);
        let make = |name: &str, change: &Value| pod(cluster, &namespace, name, &node, change);
        make("web-1", &json!({}));
        make("logs-1", &json!({"spec": {"tolerations": forever}}));
        make(
            "db-0",
            &json!({"metadata": {"ownerReferences": owned_by("StatefulSet", "db")}}),
        );
        make(
            "held-0",
            &json!({"metadata": {"finalizers": ["example.com/backup"]}}),
        );
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let failed = json!({"status": {"phase": "Failed"}});
        cluster.patch(&format!("{pods}/held-0/status"), &failed);
        cluster.delete(&format!("{pods}/held-0?gracePeriodSeconds=0"));
        cluster.delete(&format!("{pods}/db-0?gracePeriodSeconds=1"));
        let volume = cluster.name("csi-1");
        cluster.create(
            "/apis/storage.k8s.io/v1/volumeattachments",
            &json!({
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": volume, "finalizers": ["example.com/attached"]},
                "spec": {
                    "attacher": "csi.example.com",
                    "nodeName": node,
                    "source": {"persistentVolumeName": "none-such"},
                },
            }),
        );
        let run = after_its_grace(|| cluster.maint(["status", "--pods", &node]).run());
        assert_snapshot!(shown(&run), @"
        $ kubectl maint status --pods worker-1
        NAMESPACE       NAME           NODE                STATE
        apps   pod/db-0       worker-1   Terminating, [length] overdue, NodeUnreachable, cannot be replaced yet
        apps   pod/held-0     worker-1   held by finalizer example.com/backup
        apps   pod/logs-1     worker-1   Pending, NodeUnreachable, never evicted
        apps   pod/web-1      worker-1   Pending, NodeUnreachable, eviction in [length]
        -               pv/none-such   worker-1   Still attached, but no pod there uses it
        -- stderr
        1 unhealthy node, 4 stuck pods, 1 stuck volume
        Next:
          # explain one of the pods
          kubectl maint why pod/db-0 -n apps
          # by default, Kubernetes detaches volumes of a dead node after 6m
          kubectl wait --for=delete volumeattachment csi-1 --timeout=10m
          # read why the driver cannot detach it
          kubectl describe volumeattachment csi-1
          # power it off, and its volumes are detached at once
          kubectl maint fence worker-1 -- HOOK
        -- exit code 0
        ");
        let counted = cluster.maint(["status", "--pods", &node, "-v6"]).run();
        assert_eq!(
            requests(&counted),
            ["GET"; 6],
            "a list a kind: node, heartbeat, pods, Pending pods, attachments, volumes"
        );
        let all = cluster.maint(["status", "--pods", "-o", "name"]).succeeds();
        for name in ["pod/web-1", "pod/held-0"] {
            assert!(all.stdout.lines().any(|line| line == name), "{all}");
        }
        let run = cluster
            .maint(["status", "--pods", &node, "-o", "json"])
            .succeeds();
        let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let items = list["items"].as_array().expect("items");
        let held = items.iter().find(|item| item["name"] == "held-0");
        let held = held.expect("it is there");
        assert_eq!(held["state"], "HeldByFinalizer");
        assert_eq!(held["nodeHealth"], "Unreachable");
        for item in items {
            if item["kind"] == "StuckPod" {
                let name = item["name"].as_str().expect("a name");
                let none = json!({"metadata": {"finalizers": null}});
                cluster.patch(&format!("{pods}/{name}"), &none);
            }
        }
        let none = json!({"metadata": {"finalizers": null}});
        cluster.patch(
            &format!("/apis/storage.k8s.io/v1/volumeattachments/{volume}"),
            &none,
        );
    });
}

/// The kubelet of a Ready node should end these pods, but does not.
#[test]
fn pods_that_do_not_end_on_a_ready_node_are_shown_with_what_waits_for_them() {
    on_real("stranded-ready", |cluster| {
        let node = cluster.node("worker-1");
        let namespace = namespace(cluster);
        let data = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        let claimed = json!({"spec": {"volumes": [data]}});
        pod(cluster, &namespace, "web-1", &node, &claimed);
        pod(cluster, &namespace, "web-2", &node, &claimed);
        pod(cluster, &namespace, "other-1", "", &json!({}));
        pod(cluster, &namespace, "web-3", "", &claimed);
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let running = json!({"name": "main", "image": "", "imageID": "", "restartCount": 0, "ready": true,
            "state": {"running": {}}});
        let status = json!({"status": {"phase": "Running", "containerStatuses": [running]}});
        for name in ["web-1", "web-2"] {
            cluster.patch(&format!("{pods}/{name}/status"), &status);
        }
        let refused = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu."});
        let status = json!({"status": {"conditions": [refused]}});
        cluster.patch(&format!("{pods}/web-3/status"), &status);
        let well = cluster.maint(["status", "--pods", &node]).succeeds();
        assert_eq!(well.stdout, "", "web-2 runs, and nothing is stuck: {well}");
        cluster.delete(&format!("{pods}/web-1?gracePeriodSeconds=1"));
        let status = ["status", "--pods", "-A", &node];
        let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let stuck = || loop {
            let run = cluster.maint(status).succeeds();
            assert!(std::time::Instant::now() < ends, "{run}");
            if run.stdout.contains("overdue") {
                return run;
            }
        };
        assert_snapshot!(shown(&stuck()), @"
        $ kubectl maint status --pods -A worker-1
        NAMESPACE             NAME        NODE                      STATE
        apps   pod/web-1   worker-1   Terminating, [length] overdue, container main cannot be stopped
        apps   pod/web-3   -                         Pending, unschedulable: 0/3 nodes are available: 3 Insufficient cpu, pvc/data does not exist
        -- stderr
        node/worker-1 is healthy, 1 stuck pod, 1 pending replacement
        Next:
          # explain one of the pods
          kubectl maint why pod/web-1 -n apps
        -- exit code 0
        ");
        let json = cluster.maint(["status", "--pods", &node, "-o", "json"]);
        let list: Value = serde_json::from_str(&json.succeeds().stdout).expect("JSON");
        let shown = [0, 1].map(|index| {
            let item = &list["items"][index];
            [&item["kind"], &item["name"], &item["reasons"][0]["code"]].map(Value::as_str)
        });
        assert_eq!(
            shown,
            [
                [Some("StuckPod"), Some("web-1"), Some("ContainersRunning")],
                [
                    Some("PendingReplacement"),
                    Some("web-3"),
                    Some("Unschedulable")
                ],
            ]
        );
        let all = cluster.maint(["status", "--pods", "-o", "name"]).succeeds();
        let names: Vec<&str> = all.stdout.lines().collect();
        assert!(names.contains(&"pod/web-1"), "{all}");
        assert!(!names.contains(&"pod/web-3"), "it is not stuck: {all}");
    });
}

#[test]
fn pods_of_a_node_that_is_gone_are_found() {
    on_real("stranded-gone", |cluster| {
        let namespace = namespace(cluster);
        let gone = cluster.name("gone");
        pod(cluster, &namespace, "left-0", &gone, &json!({}));
        assert_snapshot!(cluster.maint(["status", "--pods", &gone]).run(), @"
        $ kubectl maint status --pods gone
        NAMESPACE            NAME         NODE                 STATE
        apps   pod/left-0   gone   Pending, NodeGone, deleted soon
        -- stderr
        1 unhealthy node, 1 stuck pod
        Next:
          # explain one of the pods
          kubectl maint why pod/left-0 -n apps
        -- exit code 0
        ");
        let all = cluster.maint(["status", "--pods"]).succeeds();
        assert!(all.stdout.contains("pod/left-0"), "{all}");
        let node = unreachable_node(cluster, "worker-9");
        let none = cluster.maint(["status", "--pods", &node]).succeeds();
        let expected = format!("no pods are stuck on node/{node}\n");
        assert_eq!((&*none.stdout, none.stderr), ("", expected));
    });
}

#[test]
fn a_line_says_that_all_nodes_are_healthy() {
    in_memory("all-well", |cluster| {
        cluster.node("worker-1");
        assert_snapshot!(cluster.maint(["status", "--pods"]).run(), @"
        $ kubectl maint status --pods
        -- stderr
        all nodes are healthy: no pods are stuck
        -- exit code 0
        ");
    });
}

#[test]
fn nothing_is_stuck_on_healthy_nodes() {
    on_real("stranded-well", |cluster| {
        let node = cluster.node("worker-1");
        let namespace = namespace(cluster);
        pod(cluster, &namespace, "web-1", &node, &json!({}));
        assert_snapshot!(cluster.maint(["status", "--pods", &node]).run(), @"
        $ kubectl maint status --pods worker-1
        -- stderr
        node/worker-1 is healthy: no pods are stuck there
        -- exit code 0
        ");
        let unknown = cluster.name("wroker-1");
        assert_eq!(cluster.maint(["status", "--pods", &unknown]).run().code, 1);
        assert_snapshot!(cluster.maint(["status", "--pods", &node, &unknown]).run(), @"
        $ kubectl maint status --pods worker-1 wroker-1
        -- stderr
        error: --pods takes one node, or none for all nodes
        hint: name at most one node
        -- exit code 2
        ");
    });
}

#[test]
fn unreadable_nodes_are_not_taken_for_healthy() {
    on_real("stranded-rights", |cluster| {
        let node = unreachable_node(cluster, "worker-1");
        let namespace = namespace(cluster);
        pod(cluster, &namespace, "web-1", &node, &json!({}));
        let plane = cluster.plane();
        let user = cluster.name("user");
        let kubeconfig = plane.user(&user, &[]).expect("a user");
        let status = || {
            let arguments = ["status", "--pods", &node];
            cluster.maint(arguments).kubeconfig(&kubeconfig).run()
        };
        let refused = status();
        assert_eq!(refused.code, 1, "{refused}");
        assert_eq!(refused.stdout, "", "{refused}");
        let rights = [
            Rule::new("", &["nodes"], &["get"]),
            Rule::new("", &["pods"], &["list"]),
        ];
        plane.grant(&user, &rights).expect("rights");
        assert_snapshot!(shown(&status()), @"
        $ kubectl maint status --pods worker-1
        NAMESPACE              NAME        NODE                       STATE
        apps   pod/web-1   worker-1   Pending, NodeUnreachable, eviction in [length]
        -- stderr
        1 unhealthy node, 1 stuck pod
        Next:
          # explain one of the pods
          kubectl maint why pod/web-1 -n apps
        Warning: could not read heartbeats (no permission to get heartbeats), volume attachments (no permission to list volumeattachments.storage.k8s.io)
        -- exit code 0
        ");
    });
}
