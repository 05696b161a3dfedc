//! `dryRun=All`: all checks, and no change.

use serde_json::json;

use crate::compare::agree;

#[test]
fn nothing_is_stored_by_a_dry_run() {
    agree(async |api| {
        let leases = api.namespace("dry-run").await;
        let body = json!({"metadata": {"name": "n"}, "spec": {"holderIdentity": "a"}});
        api.post(&format!("{leases}?dryRun=All"), body.clone())
            .await
            .is(201);
        let path = format!("{leases}/n");
        api.get(&path).await.refused(404, "NotFound");
        let made = api.post(&leases, body.clone()).await.is(201).body;
        let dry = format!("{path}?dryRun=All");
        api.post(&format!("{leases}?dryRun=All"), body)
            .await
            .refused(409, "AlreadyExists");
        api.patch(&dry, json!({"spec": {"holderIdentity": "b"}}))
            .await
            .is(200)
            .has("/spec/holderIdentity", "b");
        let mut replacement = made.clone();
        replacement["spec"]["holderIdentity"] = "c".into();
        api.put(&dry, replacement).await.is(200);
        api.delete(&dry).await.is(200).has("/status", "Success");
        api.get(&path)
            .await
            .is(200)
            .has("/spec/holderIdentity", "a");
        let stale = json!({"metadata": {"resourceVersion": "1"}});
        api.patch(&dry, stale).await.refused(409, "Conflict");
        let wrong = json!({"spec": {"leaseDurationSeconds": 0}});
        api.patch(&dry, wrong).await.refused(422, "Invalid");
    });
}

#[test]
fn the_only_value_is_all() {
    agree(async |api| {
        let leases = api.namespace("dry-run-value").await;
        let body = json!({"metadata": {"name": "n"}});
        api.post(&format!("{leases}?dryRun=true"), body.clone())
            .await
            .refused(422, "Invalid");
        api.post(&leases, body).await.is(201);
        let path = format!("{leases}/n");
        api.patch(&format!("{path}?dryRun=Some"), json!({}))
            .await
            .refused(422, "Invalid");
        api.delete(&format!("{path}?dryRun=Some"))
            .await
            .refused(422, "Invalid");
        api.delete_with(&path, json!({"dryRun": ["Some"]}))
            .await
            .refused(422, "Invalid");
        api.get(&path).await.is(200);
    });
}

#[test]
fn a_body_of_delete_options_replaces_the_query() {
    agree(async |api| {
        let leases = api.namespace("dry-run-delete").await;
        api.post(&leases, json!({"metadata": {"name": "n"}}))
            .await
            .is(201);
        let path = format!("{leases}/n");
        api.delete_with(&path, json!({"dryRun": ["All"]}))
            .await
            .is(200);
        api.get(&path).await.is(200);
        let background = json!({"propagationPolicy": "Background"});
        api.delete_with(&format!("{path}?dryRun=All"), background)
            .await
            .is(200);
        api.get(&path).await.refused(404, "NotFound");
    });
}
