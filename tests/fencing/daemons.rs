//! Pods of a DaemonSet on an unreachable node: each belongs to its node, and no other node gets a replacement.

use serde_json::{Value, json};

use crate::support::{HEARTBEAT_AGE, Stage, eventually};

/// Creates a DaemonSet that runs on the nodes of this test and uses a disk of the node.
fn daemon_set(stage: &Stage) {
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": stage.own()},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "nodeSelector": {"topology.kubernetes.io/zone": stage.own()},
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "c", "image": "none"}],
                    "volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}],
                },
            },
        },
    });
    stage.create(&[stage.namespace(), daemon_set]);
}

/// The pods that the DaemonSet created for `node`, with or without a node assigned.
fn pods_for(stage: &Stage, node: &str) -> Vec<Value> {
    let mut pods = stage.pods_with("app=agent");
    let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/\
                nodeSelectorTerms/0/matchFields/0/values/0";
    let is_for = |pod: &Value| pod.pointer(path).and_then(Value::as_str) == Some(node);
    pods.retain(is_for);
    pods
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().expect("a name")
}

/// Waits for the pod of `node`, binds it, and waits until it runs. Returns its name.
fn runs_on(stage: &Stage, node: &str) -> String {
    let waiting = || {
        let mut pods = pods_for(stage, node).into_iter();
        pods.find(|pod| pod["spec"]["nodeName"].is_null())
    };
    eventually("the DaemonSet makes a pod", || waiting().is_some());
    let pod = name(&waiting().expect("a pod")).to_owned();
    let placed = stage.plane.bind_pod(stage.own(), &pod, node);
    placed.expect("it is placed");
    eventually("the pod runs", || {
        let pod = stage.find_pod(&pod);
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    });
    pod
}

/// The pod returns only on its own node, once that is ready.
#[test]
fn a_pod_of_a_daemon_set_stays_with_its_node() {
    let mut stage = Stage::new("daemons");
    let _logs = stage.plane.keep_logs_on_panic("fencing-daemons");
    let nodes = ["worker-1", "worker-2"].map(|name| stage.name(name));
    let [unreachable, other] = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&[unreachable, other]);
    daemon_set(&stage);
    let stuck = runs_on(&stage, unreachable);
    let well = runs_on(&stage, other);
    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    stage.is_reported_unreachable(unreachable);
    // Before this taint, the controller would create another pod for the node.
    eventually("nothing is scheduled to the node", || {
        let taints = stage.node(unreachable)["spec"]["taints"].clone();
        let mut taints = taints.as_array().into_iter().flatten();
        taints.any(|taint| {
            taint["key"] == "node.kubernetes.io/unreachable" && taint["effect"] == "NoSchedule"
        })
    });
    let namespace = ["-n", stage.own()];
    stage.kubectl(&[&["delete", "pod", &stuck, "--wait=false"], &namespace[..]].concat());

    // There is no risk to accept: a second pod would be on the same node.
    let pod = format!("pod/{stuck}");
    let force = ["force-delete", &pod, "-n", stage.own(), "-o", "json"];
    let mut report = Value::Null;
    eventually("nothing is refused any more", || {
        let run = stage.maint(force).run();
        assert_eq!(run.code, 6, "{run}");
        report = run.item();
        !run.stdout.contains("\"Blocker\"")
    });
    let checks = report["checks"].as_array().expect("checks");
    let level = |id: &str| {
        let check = checks.iter().find(|check| check["id"] == id);
        check.map_or(Value::Null, |check| check["level"].clone())
    };
    assert_eq!(level("owner"), "Ok", "{report:#}");
    assert!(!report.to_string().contains("\"Risk\""), "{report:#}");
    let accepted = ["--accept-risk=none", "-m", "its node is dead"];
    stage.maint(force).args(accepted).succeeds();
    // The pods of this DaemonSet do not tolerate the NoSchedule taint, so none is created for this node.
    assert_eq!(pods_for(&stage, unreachable), [Value::Null; 0]);
    assert_eq!(name(&pods_for(&stage, other)[0]), well);

    // `fence` also removes the pod.
    kubelets
        .stop_heartbeats(other, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    stage.is_reported_unreachable(other);
    let fence = ["fence", other, "--powered-off=dark", "-o", "json"];
    let run = stage.maint(fence).succeeds();
    let item = run.item();
    for absent in ["incompleteOwners", "tolerating"] {
        assert_eq!(item[absent], Value::Null, "{run}");
    }
    assert_eq!(pods_for(&stage, other), [Value::Null; 0]);

    stage.keep(kubelets);
}
