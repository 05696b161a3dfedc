//! Compare-and-swap: resource versions and uids as conditions of a write.

use serde_json::{Value, json};

use crate::api::Api;
use crate::compare::agree;

async fn lease(api: &Api, namespace: &str) -> (String, Value) {
    let leases = api.namespace(namespace).await;
    let body = json!({"metadata": {"name": "n"}, "spec": {"holderIdentity": "a"}});
    let made = api.post(&leases, body).await.is(201).body;
    (format!("{leases}/n"), made)
}

fn take(version: &str, holder: &str) -> Value {
    json!({"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": holder}})
}

#[test]
fn a_patch_on_a_stale_version_is_a_conflict() {
    agree(async |api| {
        let (path, _) = lease(api, "stale-patch").await;
        let version = api.get(&path).await.version();
        api.patch(&path, take(&version, "b")).await.is(200);
        api.patch(&path, take(&version, "c"))
            .await
            .refused(409, "Conflict");
        api.get(&path).await.has("/spec/holderIdentity", "b");
        api.patch(&path, take("1", "c"))
            .await
            .refused(409, "Conflict");
        api.patch(&path, take("999999999999", "c"))
            .await
            .refused(409, "Conflict");
        api.patch(&path, take("nonsense", "c")).await.is(500);
        api.patch(&path, json!({"metadata": {"resourceVersion": null}}))
            .await
            .refused(422, "Invalid");
        api.patch(&path, take("", "c"))
            .await
            .refused(422, "Invalid");
    });
}

#[test]
fn a_stale_version_is_noticed_before_a_wrong_value() {
    agree(async |api| {
        let (path, _) = lease(api, "stale-wrong").await;
        let zero =
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": 0}});
        api.patch(&path, zero).await.refused(409, "Conflict");
        let unreadable = json!({"metadata": {"resourceVersion": "1"}, "spec": {"renewTime": "x"}});
        api.patch(&path, unreadable).await.refused(422, "Invalid");
    });
}

#[test]
fn a_change_that_changes_nothing_keeps_the_version() {
    agree(async |api| {
        let (path, made) = lease(api, "no-change").await;
        let version = api.get(&path).await.version();
        api.patch(&path, json!({"spec": {"holderIdentity": "a"}}))
            .await
            .is(200)
            .has("/metadata/resourceVersion", version.as_str());
        api.patch(&path, json!({})).await.is(200);
        api.put(&path, made)
            .await
            .is(200)
            .has("/metadata/resourceVersion", version);
    });
}

#[test]
fn a_put_needs_the_current_version() {
    agree(async |api| {
        let (path, made) = lease(api, "stale-put").await;
        let mut stale = made.clone();
        api.patch(&path, json!({"spec": {"holderIdentity": "b"}}))
            .await
            .is(200);
        stale["spec"]["holderIdentity"] = "c".into();
        api.put(&path, stale.clone()).await.refused(409, "Conflict");
        stale["metadata"]["resourceVersion"] = Value::Null;
        api.put(&path, stale).await.refused(422, "Invalid");
    });
}

#[test]
fn a_put_brings_a_deleted_lease_back_unless_it_names_the_uid() {
    agree(async |api| {
        let (path, mut made) = lease(api, "put-back").await;
        api.delete(&path).await.is(200);
        api.put(&path, made.clone()).await.refused(409, "Conflict");
        made["metadata"]["uid"] = Value::Null;
        api.put(&path, made.clone()).await.is(201);
        made["metadata"]["name"] = "m".into();
        made["metadata"]["resourceVersion"] = Value::Null;
        let other = path
            .replace("/n", "/m")
            .replace("/mamespaces", "/namespaces");
        api.put(&other, made).await.is(201);
    });
}

#[test]
fn another_uid_is_another_object() {
    agree(async |api| {
        let (path, mut made) = lease(api, "other-uid").await;
        let other = "11111111-2222-3333-4444-555555555555";
        api.patch(&path, json!({"metadata": {"uid": other}}))
            .await
            .refused(422, "Invalid");
        made["metadata"]["uid"] = other.into();
        api.put(&path, made).await.refused(409, "Conflict");
    });
}

#[test]
fn a_lease_made_again_has_another_uid() {
    agree(async |api| {
        let (path, made) = lease(api, "made-again").await;
        let (uid, version) = (
            &made["metadata"]["uid"],
            &made["metadata"]["resourceVersion"],
        );
        api.delete(&path).await.is(200);
        let leases = path.trim_end_matches("/n");
        let again = api
            .post(leases, json!({"metadata": {"name": "n"}}))
            .await
            .is(201);
        assert_ne!(&again.body["metadata"]["uid"], uid);
        let old =
            json!({"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": "b"}});
        api.patch(&path, old).await.refused(409, "Conflict");
    });
}
