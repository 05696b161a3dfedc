//! What a report costs: requests grow with kinds and namespaces, not with pods.

use serde_json::{Value, json};

use crate::scene::{Scene, owned_by, scene};
use crate::support::requests;

/// How many requests the report on the silent node sends.
fn cost(scene: &Scene) -> usize {
    let node = format!("node/{}", scene.node);
    let run = scene.cluster.maint(["force-delete", &node, "-v6"]).run();
    assert_eq!(run.code, 6, "{run}");
    // The Nodes that other tests have fenced are read as well.
    let of_others = run.stderr.lines().filter(|line| {
        line.contains("verb=\"") && line.contains("/nodes/") && !line.contains(&*scene.node)
    });
    requests(&run).len() - of_others.count()
}

/// Makes so many pods of `owner` in its namespace, each with a claim, beside those before.
fn make_pods(scene: &Scene, owner: &Value, count: usize) {
    let (kind, namespace) = (&owner["kind"], &owner["metadata"]["namespace"]);
    let path = format!(
        "/api/v1/namespaces/{}/pods",
        namespace.as_str().expect("one")
    );
    let prefix = kind.as_str().expect("a kind").to_lowercase();
    for _ in 0..count {
        let mut pod = owned_by(owner);
        pod["metadata"]["generateName"] = json!(format!("{prefix}-"));
        pod["spec"] = json!({
            "nodeName": scene.node,
            "containers": [{"name": "main", "image": "registry.example/web:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        });
        scene.cluster.create(&path, &pod);
    }
}

/// A controller of this kind in a namespace.
fn owner(scene: &Scene, namespace: &str, kind: &str) -> Value {
    let (group, plural) = match kind {
        "Job" => ("batch/v1", "jobs"),
        "ReplicaSet" => ("apps/v1", "replicasets"),
        _ => ("apps/v1", "statefulsets"),
    };
    let labels = json!({"app": "web"});
    let mut owner = json!({
        "apiVersion": group, "kind": kind, "metadata": {"name": "web"},
        "spec": {"template": {
            "metadata": {"labels": labels},
            "spec": {
                "restartPolicy": if kind == "Job" { "Never" } else { "Always" },
                "containers": [{"name": "main", "image": "registry.example/web:1"}],
            },
        }},
    });
    if kind != "Job" {
        owner["spec"]["selector"] = json!({"matchLabels": labels});
    }
    let path = format!("/apis/{group}/namespaces/{namespace}/{plural}");
    scene.cluster.create(&path, &owner)
}

#[test]
fn a_hundred_pods_cost_as_many_requests_as_two() {
    scene("costs", |scene| {
        let set = owner(scene, &scene.namespace, "StatefulSet");
        make_pods(scene, &set, 2);
        let of_two = cost(scene);
        make_pods(scene, &set, 108);
        assert_eq!(cost(scene), of_two);
        let node = format!("node/{}", scene.node);
        let report = scene.cluster.maint(["force-delete", &node]).run();
        let lines = report.stdout.lines().count() + report.stderr.lines().count();
        assert!(lines <= 40, "{lines}: {report}");
        assert!(report.stdout.contains(" with 110 pods\n"), "{report}");
        assert!(
            report
                .stdout
                .contains("  RISK     owner             all pods: "),
            "{report}"
        );
        // Pods, Node, its zone, heartbeat, heartbeats, two leases, four rights; StatefulSets, claims,
        // quotas and budgets of the namespace; volumes, attachments and drivers.
        assert_eq!(of_two, 18);
    });
}

#[test]
fn requests_grow_with_kinds_and_namespaces_and_not_with_their_pods() {
    scene("kinds", |scene| {
        let other = scene.cluster.name("bank");
        scene
            .cluster
            .create("/api/v1/namespaces", &json!({"metadata": {"name": other}}));
        let mut owners = Vec::new();
        let mut expected = 18;
        for (namespace, kind, more) in [
            (&scene.namespace, "StatefulSet", 0),
            (&scene.namespace, "ReplicaSet", 1),
            (&scene.namespace, "Job", 1),
            // A namespace has a right, claims, quotas and budgets, too.
            (&other, "StatefulSet", 5),
            (&other, "Job", 1),
        ] {
            let owner = owner(scene, namespace, kind);
            make_pods(scene, &owner, 1);
            expected += more;
            assert_eq!(cost(scene), expected, "{kind} in {namespace}");
            owners.push(owner);
        }
        for owner in &owners {
            make_pods(scene, owner, 5);
        }
        assert_eq!(cost(scene), expected);
    });
}

/// How many requests `status --pods` sends for the silent node, or for all.
fn cost_of_status(scene: &Scene, nodes: &[&str]) -> usize {
    let run = scene.cluster.maint(["status", "--pods", "-v6"]);
    requests(&run.args(nodes).succeeds()).len()
}

/// A pod of `owner` that no node takes, with a claim.
fn make_pending(scene: &Scene, owner: &Value) {
    let mut pod = owned_by(owner);
    pod["metadata"]["generateName"] = json!("pending-");
    pod["spec"] = json!({
        "containers": [{"name": "main", "image": "registry.example/web:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    });
    let namespace = owner["metadata"]["namespace"].as_str().expect("one");
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    scene.cluster.create(&path, &pod);
}

#[test]
fn status_of_a_hundred_pods_costs_as_many_requests_as_of_two() {
    scene("status-costs", |scene| {
        let set = owner(scene, &scene.namespace, "ReplicaSet");
        make_pods(scene, &set, 2);
        make_pending(scene, &set);
        let node = [&*scene.node];
        let of_two = cost_of_status(scene, &node);
        make_pods(scene, &set, 108);
        for _ in 0..10 {
            make_pending(scene, &set);
        }
        assert_eq!(cost_of_status(scene, &node), of_two);
        // Node, heartbeat, its pods, Pending pods, attachments, namespaces; claims of the namespace.
        assert_eq!(of_two, 7);
        let other = scene.cluster.name("bank");
        let object = json!({"metadata": {"name": other}});
        scene.cluster.create("/api/v1/namespaces", &object);
        let of_other = owner(scene, &other, "ReplicaSet");
        make_pods(scene, &of_other, 1);
        make_pending(scene, &of_other);
        assert_eq!(cost_of_status(scene, &node), of_two + 1, "its claims");
    });
}
