//! Namespaces, from creation to deletion.

use serde_json::json;

use crate::compare::agree;

#[test]
fn a_namespace_is_made_and_labeled() {
    agree(async |api| {
        api.namespace("ns-life").await;
        let path = "/api/v1/namespaces/ns-life";
        api.get(path).await.is(200).has("/status/phase", "Active");
        api.post(
            "/api/v1/namespaces",
            json!({"metadata": {"name": "ns-life"}}),
        )
        .await
        .refused(409, "AlreadyExists");
        api.patch(path, json!({"metadata": {"labels": {"a": "b"}}}))
            .await
            .is(200);
        api.patch(path, json!({"status": {"phase": "Terminating"}}))
            .await
            .is(200)
            .has("/status/phase", "Active");
        let body = json!({"metadata": {"name": "ns-other"}});
        api.put("/api/v1/namespaces/ns-other", body)
            .await
            .refused(404, "NotFound");
        for immortal in ["default", "kube-system"] {
            api.delete(&format!("/api/v1/namespaces/{immortal}"))
                .await
                .refused(403, "Forbidden");
        }
    });
}

#[test]
fn nothing_new_goes_into_a_terminating_namespace() {
    agree(async |api| {
        let leases = api.namespace("ns-ends").await;
        let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
        api.post(&leases, held).await.is(201);
        let path = "/api/v1/namespaces/ns-ends";
        api.delete(path)
            .await
            .is(200)
            .has("/status/phase", "Terminating");
        api.post(&leases, json!({"metadata": {"name": "late"}}))
            .await
            .refused(403, "Forbidden")
            .because_of(&["metadata.namespace"]);
        let held = format!("{leases}/held");
        api.patch(&held, json!({"spec": {"holderIdentity": "a"}}))
            .await
            .is(200);
        let body = json!({"metadata": {"name": "put"}});
        api.put(&format!("{leases}/put"), body)
            .await
            .refused(403, "Forbidden");
        api.patch(&held, json!({"metadata": {"finalizers": null}}))
            .await
            .is(200);
        api.await_absence(path).await;
        api.get(&held).await.refused(404, "NotFound");
        api.post(&leases, json!({"metadata": {"name": "late"}}))
            .await
            .refused(404, "NotFound");
    });
}

#[test]
fn objects_in_a_namespace_are_deleted_with_it() {
    agree(async |api| {
        let leases = api.namespace("ns-content").await;
        api.post(&leases, json!({"metadata": {"name": "n"}}))
            .await
            .is(201);
        api.delete("/api/v1/namespaces/ns-content").await.is(200);
        api.await_absence("/api/v1/namespaces/ns-content").await;
        api.get(&format!("{leases}/n"))
            .await
            .refused(404, "NotFound");
    });
}
