//! Events, in both of their API versions.

use serde_json::{Value, json};

use crate::compare::agree;

fn about_node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": "11111111-2222-3333-4444-555555555555"})
}

#[test]
fn an_event_about_a_node_goes_into_default() {
    agree(async |api| {
        let event = json!({
            "metadata": {"name": "event-core"},
            "involvedObject": about_node("event-node-core"),
            "reason": "MaintenanceTaken",
            "message": "taken over",
            "type": "Normal",
            "source": {"component": "kubectl-maint"},
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "count": 1,
        });
        api.post("/api/v1/namespaces/default/events", event.clone())
            .await
            .is(201);
        let by_object =
            "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Devent-node-core";
        assert_eq!(api.get(by_object).await.names(), ["event-core"]);
        api.get("/apis/events.k8s.io/v1/namespaces/default/events/event-core")
            .await
            .is(200);
        api.delete("/api/v1/namespaces/default/events/event-core")
            .await
            .is(200);

        api.namespace("event-elsewhere").await;
        api.post("/api/v1/namespaces/event-elsewhere/events", event)
            .await
            .refused(422, "Invalid")
            .because_of(&["involvedObject.namespace"]);
    });
}

#[test]
fn the_newer_api_version_has_other_field_names() {
    agree(async |api| {
        let events = "/apis/events.k8s.io/v1/namespaces/default/events";
        let event = json!({
            "metadata": {"name": "event-new"},
            "regarding": about_node("event-node-new"),
            "reason": "MaintenanceBroken",
            "action": "Release",
            "note": "released by force",
            "type": "Warning",
            "eventTime": "2026-01-02T03:04:05.123456Z",
            "reportingController": "kubectl-maint",
            "reportingInstance": "host",
        });
        api.post(events, event.clone()).await.is(201);
        api.get("/api/v1/namespaces/default/events/event-new")
            .await
            .is(200);
        api.get(&format!(
            "{events}?fieldSelector=reason%3DMaintenanceBroken"
        ))
        .await
        .is(200);
        api.delete(&format!("{events}/event-new")).await.is(200);
    });
}
