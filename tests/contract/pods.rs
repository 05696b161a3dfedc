//! Pods: deletion with a grace period.

use serde_json::{Value, json};

use crate::compare::agree;

fn pod(name: &str, node: Option<&str>) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "example.com/c:1"}],
        },
    })
}

#[test]
fn a_pod_on_a_node_has_a_grace_period() {
    agree(async |api| {
        api.namespace("pod-grace").await;
        api.post("/api/v1/nodes", json!({"metadata": {"name": "pod-grace"}}))
            .await
            .is(201);
        let pods = "/api/v1/namespaces/pod-grace/pods";
        api.post(pods, pod("a", Some("pod-grace"))).await.is(201);
        let path = format!("{pods}/a");
        let terminating = api.delete(&path).await.is(200);
        assert_eq!(
            terminating.body["metadata"]["deletionGracePeriodSeconds"],
            30
        );
        let shorter = api
            .delete_with(&path, json!({"gracePeriodSeconds": 5}))
            .await;
        assert_eq!(shorter.body["metadata"]["deletionGracePeriodSeconds"], 5);
        api.delete_with(&path, json!({"gracePeriodSeconds": 0}))
            .await
            .is(200);
        api.get(&path).await.refused(404, "NotFound");
        api.delete("/api/v1/nodes/pod-grace").await.is(200);
    });
}

#[test]
fn a_pod_without_a_node_is_deleted_at_once() {
    agree(async |api| {
        api.namespace("pod-pending").await;
        let pods = "/api/v1/namespaces/pod-pending/pods";
        api.post(pods, pod("a", None)).await.is(201);
        let path = format!("{pods}/a");
        let by_node = format!("{pods}?fieldSelector=spec.nodeName%3D");
        assert_eq!(api.get(&by_node).await.names(), ["a"]);
        api.delete(&path).await.is(200).has("/kind", "Pod");
        api.get(&path).await.refused(404, "NotFound");
    });
}
