//! Nodes: the status and its subresource, cordons, and the strategic merge patches of kubectl.

use serde_json::{Value, json};

use crate::api::{Api, STRATEGIC};
use crate::compare::agree;

fn condition(status: &str) -> Value {
    json!({
        "type": "Ready",
        "status": status,
        "reason": "KubeletReady",
        "message": "ready",
        "lastHeartbeatTime": "2026-01-02T03:04:05Z",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    })
}

async fn node(api: &Api, name: &str) -> String {
    let body = json!({
        "metadata": {"name": name},
        "status": {"conditions": [condition("True")]},
    });
    api.post("/api/v1/nodes", body).await.is(201);
    format!("/api/v1/nodes/{name}")
}

#[test]
fn a_node_is_made_with_its_status() {
    agree(async |api| {
        let path = node(api, "node-status").await;
        api.post(
            "/api/v1/nodes",
            json!({"metadata": {"name": "node-status"}}),
        )
        .await
        .refused(409, "AlreadyExists");
        api.post("/api/v1/nodes", json!({"metadata": {"name": "Node"}}))
            .await
            .refused(422, "Invalid");
        // The main path does not change the status, and the status path changes nothing else.
        let both = json!({"spec": {"unschedulable": true}, "status": {"conditions": [condition("False")]}});
        api.patch(&path, both.clone())
            .await
            .is(200)
            .has("/status/conditions/0/status", "True");
        let written = api.patch(&format!("{path}/status"), both).await.is(200);
        assert_eq!(written.body["status"]["conditions"][0]["status"], "False");
        api.get(&format!("{path}/status")).await.is(200);
        api.delete(&path).await.is(200);
        api.get(&path).await.refused(404, "NotFound");
    });
}

#[test]
fn kubectls_patches_are_understood() {
    agree(async |api| {
        let path = node(api, "node-kubectl").await;
        // cordon and uncordon
        api.patch_as(STRATEGIC, &path, json!({"spec": {"unschedulable": true}}))
            .await
            .is(200);
        api.patch_as(STRATEGIC, &path, json!({"spec": {"unschedulable": null}}))
            .await
            .is(200);
        // taint
        let taint = json!({"spec": {"taints": [{"key": "a.example.com/b", "value": "c", "effect": "NoSchedule"}]}});
        api.patch_as(STRATEGIC, &path, taint).await.is(200);
        // label and annotate
        let labels = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
        api.patch_as(STRATEGIC, &path, labels).await.is(200);
        let removed = json!({"metadata": {"labels": {"a": null}}});
        api.patch_as(STRATEGIC, &path, removed).await.is(200);
        // A condition is identified by its type.
        let status = json!({"status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": null, "lastTransitionTime": null},
            {"type": "MemoryPressure", "status": "False"},
        ]}});
        api.patch_as(STRATEGIC, &format!("{path}/status"), status)
            .await
            .is(200);
        let gone = json!({"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}});
        api.patch_as(STRATEGIC, &format!("{path}/status"), gone)
            .await
            .is(200);
        api.delete(&path).await.is(200);
    });
}

#[test]
fn nodes_are_selected_by_label_and_cordon() {
    agree(async |api| {
        for (name, cordoned) in [("node-sel-a", true), ("node-sel-b", false)] {
            let path = node(api, name).await;
            let change = json!({
                "metadata": {"labels": {"contract": "node-sel"}},
                "spec": {"unschedulable": cordoned},
            });
            api.patch(&path, change).await.is(200);
        }
        let labeled = "/api/v1/nodes?labelSelector=contract%3Dnode-sel";
        assert_eq!(api.get(labeled).await.names(), ["node-sel-a", "node-sel-b"]);
        let cordoned = format!("{labeled}&fieldSelector=spec.unschedulable%3Dtrue");
        assert_eq!(api.get(&cordoned).await.names(), ["node-sel-a"]);
        api.delete(labeled).await.is(200);
    });
}
