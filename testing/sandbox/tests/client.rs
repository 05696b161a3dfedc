//! The sandbox, as seen by a `kube::Client` in the same process.

use std::time::Duration;

use chrono::DateTime;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Api;
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use sandbox::Sandbox;
use serde_json::json;

fn lease(name: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 60},
    }))
    .unwrap()
}

fn leases(sandbox: &Sandbox) -> Api<Lease> {
    Api::namespaced(sandbox.client(), "default")
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the server: {other}"),
    }
}

#[tokio::test]
async fn a_lease_is_made_read_changed_and_deleted() {
    let sandbox = Sandbox::new();
    let leases = leases(&sandbox);
    let made = leases
        .create(&PostParams::default(), &lease("n"))
        .await
        .unwrap();
    assert!(made.metadata.uid.is_some());

    let params = PatchParams::default();
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": made.metadata.resource_version},
        "spec": {"holderIdentity": "b"},
    }));
    let change = || leases.patch("n", &params, &patch);
    let changed = change().await.unwrap();
    assert_eq!(changed.spec.unwrap().holder_identity.as_deref(), Some("b"));
    assert_eq!(code(&change().await.unwrap_err()), 409);

    leases.delete("n", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(&leases.get("n").await.unwrap_err()), 404);
}

#[tokio::test]
async fn nodes_and_namespaces_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.add_node("b");
    sandbox.add_node(sandbox::Node::named("a").label("pool", "x"));
    let nodes: Api<Node> = Api::all(sandbox.client());
    let names = |list: kube::core::ObjectList<Node>| -> Vec<_> {
        list.items
            .into_iter()
            .filter_map(|n| n.metadata.name)
            .collect()
    };
    assert_eq!(
        names(nodes.list(&ListParams::default()).await.unwrap()),
        ["a", "b"]
    );
    let chosen = ListParams::default().labels("pool=x");
    assert_eq!(names(nodes.list(&chosen).await.unwrap()), ["a"]);

    let namespaces: Api<Namespace> = Api::all(sandbox.client());
    assert!(namespaces.get("kube-node-lease").await.is_ok());
}

#[tokio::test]
async fn pages_show_one_state_even_while_objects_change() {
    let sandbox = Sandbox::new();
    let leases = leases(&sandbox);
    for name in ["a", "b", "c"] {
        leases
            .create(&PostParams::default(), &lease(name))
            .await
            .unwrap();
    }
    let first = leases.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    leases.delete("c", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let second = leases
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    assert_eq!(second.items[0].metadata.name.as_deref(), Some("c"));

    sandbox.compact();
    let expired = leases
        .list(&ListParams::default().continue_token(&token))
        .await;
    assert_eq!(code(&expired.unwrap_err()), 410);
}

#[tokio::test(start_paused = true)]
async fn a_lease_goes_shortly_after_its_node() {
    let sandbox = Sandbox::builder()
        .collection_delay(Duration::from_secs(5))
        .build();
    sandbox.add_node("n");
    let heartbeats: Api<Lease> = Api::namespaced(sandbox.client(), "kube-node-lease");
    let nodes: Api<Node> = Api::all(sandbox.client());
    nodes.delete("n", &DeleteParams::default()).await.unwrap();
    assert!(heartbeats.get("n").await.is_ok());
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(code(&heartbeats.get("n").await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_changes_in_order_and_ends_at_its_timeout() {
    let sandbox = Sandbox::new();
    let leases = leases(&sandbox);
    leases
        .create(&PostParams::default(), &lease("n"))
        .await
        .unwrap();
    let params = WatchParams::default().timeout(20);
    let events = leases.watch(&params, "0").await.unwrap().boxed();
    let writer = leases.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let patch = json!({"spec": {"holderIdentity": "b"}});
        writer
            .patch("n", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        writer.delete("n", &DeleteParams::default()).await.unwrap();
    });
    let seen: Vec<String> = events
        .map_ok(|event| match event {
            WatchEvent::Added(_) => "added".to_owned(),
            WatchEvent::Modified(lease) => lease.spec.unwrap().holder_identity.unwrap(),
            WatchEvent::Deleted(_) => "deleted".to_owned(),
            WatchEvent::Bookmark(_) => "bookmark".to_owned(),
            WatchEvent::Error(status) => status.to_string(),
        })
        .try_collect()
        .await
        .unwrap();
    assert_eq!(seen, ["added", "b", "deleted", "bookmark"]);
}

#[tokio::test]
async fn with_a_clock_and_a_seed_everything_is_repeatable() {
    let made = || async {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let sandbox = Sandbox::builder().seed(1).clock(move || start).build();
        let made = leases(&sandbox)
            .create(&PostParams::default(), &lease("n"))
            .await
            .unwrap();
        serde_json::to_string(&made).unwrap()
    };
    assert_eq!(made().await, made().await);
}
