//! DELETE: preconditions, finalizers, and dependents that are deleted after their owner.

use serde_json::{Value, json};

use crate::api::Api;
use crate::compare::agree;

/// A uid that no object has.
const NOBODY: &str = "11111111-2222-3333-4444-555555555555";

async fn lease(api: &Api, leases: &str, metadata: Value) -> String {
    let made = api
        .post(leases, json!({ "metadata": metadata }))
        .await
        .is(201);
    format!("{leases}/{}", made.text("/metadata/name"))
}

async fn node(api: &Api, name: &str) -> String {
    let body = json!({"metadata": {"name": name}});
    api.post("/api/v1/nodes", body).await.is(201).uid()
}

fn owned(name: &str, node: &str, uid: &str) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    json!({"name": name, "ownerReferences": [owner]})
}

/// The garbage collector orphans only Leases that it has seen. It deletes one that it sees later, because the owner is
/// gone. It sees Leases in order: if it deletes a probe whose owner does not exist, it has seen the earlier ones.
async fn wait_until_collector_has_seen(api: &Api, leases: &str, name: &str) {
    let probe = owned(&format!("{name}-probe"), "nobody", NOBODY);
    let probe = lease(api, leases, probe).await;
    api.await_absence(&probe).await;
}

#[test]
fn preconditions_must_hold() {
    agree(async |api| {
        let leases = api.namespace("preconditions").await;
        let path = lease(api, &leases, json!({"name": "n"})).await;
        let read = api.get(&path).await;
        let other = json!({"preconditions": {"uid": NOBODY}});
        api.delete_with(&path, other).await.refused(409, "Conflict");
        let stale = json!({"preconditions": {"resourceVersion": "1"}});
        api.delete_with(&path, stale).await.refused(409, "Conflict");
        let right =
            json!({"preconditions": {"uid": read.uid(), "resourceVersion": read.version()}});
        api.delete_with(&path, right).await.is(200);
    });
}

#[test]
fn delete_options_may_name_their_kind() {
    agree(async |api| {
        let leases = api.namespace("delete-options").await;
        let path = lease(api, &leases, json!({"name": "n"})).await;
        let wrong =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Sideways"});
        api.delete_with(&path, wrong).await.refused(422, "Invalid");
        let options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "gracePeriodSeconds": 0,
        });
        api.delete_with(&path, options).await.is(200);
    });
}

#[test]
fn a_finalizer_holds_an_object_until_it_is_taken_away() {
    agree(async |api| {
        let leases = api.namespace("finalizers").await;
        let held = json!({"name": "n", "finalizers": ["example.com/hold"]});
        let path = lease(api, &leases, held).await;
        api.delete(&path).await.is(200).has("/kind", "Lease");
        api.delete(&path).await.is(200);
        api.delete_with(&path, json!({"gracePeriodSeconds": 0}))
            .await
            .is(200);
        api.get(&path).await.is(200);
        api.patch(&path, json!({"spec": {"holderIdentity": "a"}}))
            .await
            .is(200);
        let another = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
        api.patch(&path, another)
            .await
            .refused(422, "Invalid")
            .because_of(&["metadata.finalizers", "metadata.finalizers"]);
        let undelete = json!({"metadata": {"deletionTimestamp": null}});
        api.patch(&path, undelete).await.is(200);
        api.patch(&path, json!({"metadata": {"finalizers": null}}))
            .await
            .is(200);
        api.get(&path).await.refused(404, "NotFound");
    });
}

#[test]
fn a_lease_goes_after_its_node() {
    agree(async |api| {
        let leases = api.namespace("owner-goes").await;
        let uid = node(api, "owner-goes").await;
        let path = lease(api, &leases, owned("owner-goes", "owner-goes", &uid)).await;
        api.delete("/api/v1/nodes/owner-goes").await.is(200);
        api.await_absence(&path).await;
        api.get(&path).await.refused(404, "NotFound");
    });
}

#[test]
fn a_lease_with_a_wrong_owner_uid_goes_too() {
    agree(async |api| {
        let leases = api.namespace("owner-wrong").await;
        node(api, "owner-wrong").await;
        let path = lease(api, &leases, owned("owner-wrong", "owner-wrong", NOBODY)).await;
        api.await_absence(&path).await;
        let nobody = lease(api, &leases, owned("nobody", "owner-nobody", NOBODY)).await;
        api.await_absence(&nobody).await;
        api.get("/api/v1/nodes/owner-wrong").await.is(200);
        api.delete("/api/v1/nodes/owner-wrong").await.is(200);
    });
}

#[test]
fn a_node_made_again_leaves_the_lease_of_the_earlier_one_to_be_collected() {
    agree(async |api| {
        let leases = api.namespace("owner-again").await;
        let first = node(api, "owner-again").await;
        let path = lease(api, &leases, owned("owner-again", "owner-again", &first)).await;
        api.delete("/api/v1/nodes/owner-again").await.is(200);
        let second = node(api, "owner-again").await;
        assert_ne!(first, second);
        api.await_absence(&path).await;
        lease(api, &leases, owned("owner-again", "owner-again", &second)).await;
        api.delete("/api/v1/nodes/owner-again").await.is(200);
        api.await_absence(&path).await;
    });
}

#[test]
fn a_lease_stays_while_one_of_its_owners_does() {
    agree(async |api| {
        let leases = api.namespace("owner-two").await;
        let (one, two) = (node(api, "owner-one").await, node(api, "owner-two").await);
        let mut metadata = owned("n", "owner-one", &one);
        let other = owned("n", "owner-two", &two)["ownerReferences"][0].clone();
        metadata["ownerReferences"]
            .as_array_mut()
            .unwrap()
            .push(other);
        let path = lease(api, &leases, metadata).await;
        api.delete("/api/v1/nodes/owner-one").await.is(200);
        let left = async {
            while api.peek(&path).await.body["metadata"]["ownerReferences"]
                .as_array()
                .is_some_and(|owners| owners.len() > 1)
            {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), left)
            .await
            .unwrap();
        api.get(&path).await.is(200);
        api.delete("/api/v1/nodes/owner-two").await.is(200);
        api.await_absence(&path).await;
    });
}

#[test]
fn an_orphaning_or_foreground_deletion_is_a_finalizer_for_the_collector() {
    agree(async |api| {
        let leases = api.namespace("propagation").await;
        for (name, policy, survives) in [
            ("propagate-orphan", "Orphan", true),
            ("propagate-foreground", "Foreground", false),
        ] {
            let uid = node(api, name).await;
            let path = lease(api, &leases, owned(name, name, &uid)).await;
            wait_until_collector_has_seen(api, &leases, name).await;
            let node = format!("/api/v1/nodes/{name}");
            api.delete_with(&node, json!({ "propagationPolicy": policy }))
                .await
                .is(200);
            api.await_absence(&node).await;
            if survives {
                api.get(&path)
                    .await
                    .is(200)
                    .has("/metadata/ownerReferences", Value::Null);
            } else {
                api.get(&path).await.refused(404, "NotFound");
            }
        }
    });
}

#[test]
fn a_collection_is_deleted_by_selector() {
    agree(async |api| {
        let leases = api.namespace("delete-many").await;
        for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
            lease(
                api,
                &leases,
                json!({"name": name, "labels": {"color": color}}),
            )
            .await;
        }
        api.delete(&format!("{leases}?labelSelector=color%3Dred"))
            .await
            .is(200);
        assert_eq!(api.get(&leases).await.names(), ["b"]);
        api.delete(&leases).await.is(200);
        assert!(api.get(&leases).await.names().is_empty());
    });
}
