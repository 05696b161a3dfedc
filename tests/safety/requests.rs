//! What a report costs: requests grow with kinds and namespaces, not with pods.

use serde_json::json;

use crate::scene::{Scene, scene};
use crate::support::requests;

/// How many requests the report on the silent node sends.
fn cost(scene: &Scene) -> usize {
    let node = format!("node/{}", scene.node);
    let run = scene.cluster.maint(["force-delete", &node, "-v6"]).run();
    assert_eq!(run.code, 6, "{run}");
    requests(&run).len()
}

#[test]
fn a_hundred_pods_cost_as_many_requests_as_two() {
    scene("costs", |scene| {
        let set = scene.stateful_set("web", 110, 0);
        let owned = json!({
            "metadata": {"ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web",
                "uid": set["metadata"]["uid"], "controller": true,
            }]},
            "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        });
        for index in 0..2 {
            scene.make_pod(&format!("web-{index}"), &owned);
        }
        let of_two = cost(scene);
        for index in 2..110 {
            scene.make_pod(&format!("web-{index}"), &owned);
        }
        assert_eq!(cost(scene), of_two);
        // Pods, Node, its zone, heartbeat, heartbeats, two leases, four rights; StatefulSets, claims
        // and budgets of the namespace; volumes, attachments and drivers.
        assert_eq!(of_two, 17);
    });
}
