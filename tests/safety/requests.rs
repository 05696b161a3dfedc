//! The cost of a report: the number of requests grows with kinds and namespaces, not with pods.

use serde_json::{Value, json};

use crate::fixture::{Fixture, fixture, owned_by};
use crate::support::requests;

/// The number of requests that the report on the unreachable node sends.
fn cost(fixture: &Fixture) -> usize {
    let node = format!("node/{}", fixture.node);
    let run = fixture.cluster.maint(["force-delete", &node, "-v6"]).run();
    assert_eq!(run.code, 6, "{run}");
    // The report also reads Nodes that other tests have fenced.
    let of_others = run.stderr.lines().filter(|line| {
        line.contains("verb=\"") && line.contains("/nodes/") && !line.contains(&*fixture.node)
    });
    requests(&run).len() - of_others.count()
}

/// Creates `count` more pods of `owner` in its namespace, each with a claim.
fn make_pods(fixture: &Fixture, owner: &Value, count: usize) {
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
            "nodeName": fixture.node,
            "containers": [{"name": "main", "image": "registry.example/web:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        });
        fixture.cluster.create(&path, &pod);
    }
}

/// Creates a controller of this kind in a namespace.
fn owner(fixture: &Fixture, namespace: &str, kind: &str) -> Value {
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
    fixture.cluster.create(&path, &owner)
}

#[test]
fn a_hundred_pods_cost_as_many_requests_as_two() {
    fixture("costs", |fixture| {
        let set = owner(fixture, &fixture.namespace, "StatefulSet");
        make_pods(fixture, &set, 2);
        let of_two = cost(fixture);
        make_pods(fixture, &set, 108);
        assert_eq!(cost(fixture), of_two);
        let node = format!("node/{}", fixture.node);
        let report = fixture.cluster.maint(["force-delete", &node]).run();
        let lines = report.stdout.lines().count() + report.stderr.lines().count();
        assert!(lines <= 40, "{lines}: {report}");
        assert!(report.stdout.contains(" with 110 pods\n"), "{report}");
        assert!(
            report
                .stdout
                .contains("  RISK     owner             all pods: "),
            "{report}"
        );
        // The requests: pods, Node, its zone, heartbeat, heartbeats, two leases, four rights; StatefulSets, claims and
        // budgets of the namespace; volumes, attachments and drivers.
        assert_eq!(of_two, 17);
    });
}

#[test]
fn requests_grow_with_kinds_and_namespaces_and_not_with_their_pods() {
    fixture("kinds", |fixture| {
        let other = fixture.cluster.name("bank");
        fixture
            .cluster
            .create("/api/v1/namespaces", &json!({"metadata": {"name": other}}));
        let mut owners = Vec::new();
        let mut expected = 17;
        for (namespace, kind, more) in [
            (&fixture.namespace, "StatefulSet", 0),
            (&fixture.namespace, "ReplicaSet", 1),
            (&fixture.namespace, "Job", 1),
            // A namespace also needs requests for a right, claims and budgets.
            (&other, "StatefulSet", 4),
            (&other, "Job", 1),
        ] {
            let owner = owner(fixture, namespace, kind);
            make_pods(fixture, &owner, 1);
            expected += more;
            assert_eq!(cost(fixture), expected, "{kind} in {namespace}");
            owners.push(owner);
        }
        for owner in &owners {
            make_pods(fixture, owner, 5);
        }
        assert_eq!(cost(fixture), expected);
    });
}

/// The number of requests that `status --pods` sends for these nodes, or for all.
fn cost_of_status(fixture: &Fixture, nodes: &[&str]) -> usize {
    let run = fixture.cluster.maint(["status", "--pods", "-v6"]);
    requests(&run.args(nodes).succeeds()).len()
}

/// Creates a Pending pod of `owner` without a node, with a claim.
fn make_pending(fixture: &Fixture, owner: &Value) {
    let mut pod = owned_by(owner);
    pod["metadata"]["generateName"] = json!("pending-");
    pod["spec"] = json!({
        "containers": [{"name": "main", "image": "registry.example/web:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    });
    let namespace = owner["metadata"]["namespace"].as_str().expect("one");
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    fixture.cluster.create(&path, &pod);
}

#[test]
fn status_of_a_hundred_pods_costs_as_many_requests_as_of_two() {
    fixture("status-costs", |fixture| {
        let set = owner(fixture, &fixture.namespace, "ReplicaSet");
        make_pods(fixture, &set, 2);
        make_pending(fixture, &set);
        let node = [&*fixture.node];
        let of_two = cost_of_status(fixture, &node);
        make_pods(fixture, &set, 108);
        for _ in 0..10 {
            make_pending(fixture, &set);
        }
        assert_eq!(cost_of_status(fixture, &node), of_two);
        // The requests: Node, heartbeat, its pods, Pending pods, attachments; claims of the namespace.
        assert_eq!(of_two, 6);
        let other = fixture.cluster.name("bank");
        let object = json!({"metadata": {"name": other}});
        fixture.cluster.create("/api/v1/namespaces", &object);
        let of_other = owner(fixture, &other, "ReplicaSet");
        make_pods(fixture, &of_other, 1);
        make_pending(fixture, &of_other);
        assert_eq!(cost_of_status(fixture, &node), of_two + 1, "its claims");
    });
}
