//! Leases that other tools create or change.

use std::time::Duration;

use maintenance_lease::protocol::{LockId, Now, Refusal, State};
use maintenance_lease::{Acquire, Done, Hold, NodeLease, Release, Renew};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, annotation, micros, noon, noon_and, refusal};

on_both_servers! {
    writes_of_others_survive_every_verb,
    a_lease_that_client_go_released_is_free,
    a_lease_of_medik8s_is_held_by_it_and_then_expires,
    a_holder_that_writes_no_nonce_may_use_every_verb,
    a_new_holder_does_not_get_the_reason_of_the_old_one,
    a_renewal_does_not_restore_what_the_last_holder_wrote,
    the_reason_of_a_hold_made_by_hand_counts,
}

async fn writes_of_others_survive_every_verb(cluster: Cluster) {
    let node = cluster.node("n").await;
    let metadata = json!({
        "name": node,
        "labels": {"team": "storage"},
        "annotations": {"example.com/ticket": "4711", "kubectl-maint.dev.example.com/reason": "x"},
        "finalizers": ["example.com/looks-first"],
    });
    let theirs = cluster.write_lease_with(metadata, json!({})).await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    let acquire = Acquire::new().reason("kernel");
    let seen = async || alice.get(&node).await.unwrap().unwrap();
    let until = cluster.now() + Duration::from_secs(3600);

    alice.try_acquire(&node, &acquire).await.unwrap();
    assert_untouched(&cluster, &theirs).await;
    alice
        .renew(&node, &Renew::new().reason("disk"))
        .await
        .unwrap();
    assert_untouched(&cluster, &theirs).await;
    alice.release(&node, &Release::new()).await.unwrap();
    assert_untouched(&cluster, &theirs).await;
    bob.try_acquire(&node, &acquire).await.unwrap();
    alice
        .force_release(&seen().await, &Release::new().reason("gone home"))
        .await
        .unwrap();
    assert_untouched(&cluster, &theirs).await;
    bob.try_acquire(&node, &acquire).await.unwrap();
    let hold = Hold::new("disk").until(until).take_over([seen().await]);
    alice.hold(&node, &hold).await.unwrap();
    assert_untouched(&cluster, &theirs).await;
    alice.hold(&node, &Hold::new("disk, still")).await.unwrap();
    assert_untouched(&cluster, &theirs).await;
    alice.unhold(&node, None).await.unwrap();
    assert_untouched(&cluster, &theirs).await;

    let lease = cluster.lease(&node).await;
    let annotations = lease["metadata"]["annotations"].as_object().unwrap();
    let ours: Vec<&String> = annotations
        .keys()
        .filter(|key| key.starts_with("kubectl-maint.dev/"))
        .collect();
    assert_eq!(
        ours,
        [
            // An annotation of the last takeover.
            "kubectl-maint.dev/breaks",
            "kubectl-maint.dev/history",
            "kubectl-maint.dev/last-acquisition",
            "kubectl-maint.dev/last-holder",
            "kubectl-maint.dev/released-at"
        ]
    );
    cluster
        .patch_lease(&node, json!({"metadata": {"finalizers": null}}))
        .await;
}

async fn assert_untouched(cluster: &Cluster, theirs: &Value) {
    let name = theirs["metadata"]["name"].as_str().unwrap();
    let lease = cluster.lease(name).await;
    for field in ["uid", "labels", "finalizers"] {
        assert_eq!(lease["metadata"][field], theirs["metadata"][field]);
    }
    for (key, value) in theirs["metadata"]["annotations"].as_object().unwrap() {
        assert_eq!(lease["metadata"]["annotations"][key], *value, "{key}");
    }
}

/// client-go empties the holder, sets the duration to one second, and sets the times.
async fn a_lease_that_client_go_released_is_free(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({
        "holderIdentity": "",
        "acquireTime": micros(noon()),
        "renewTime": micros(noon()),
        "leaseDurationSeconds": 1,
        "leaseTransitions": 3,
    });
    cluster.write_lease(&node, spec).await;
    let alice = cluster.holder_at(noon(), "alice");
    let lease = alice.get(&node).await.unwrap().unwrap();
    assert_eq!(lease.state(Now::at(noon().into())), State::Free);
    let refused = refusal(alice.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
    let change = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(change.done, Done::AlreadyFree);
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.lease.unwrap().transitions(), 4);
}

/// The remediation operators of medik8s have such Leases in another namespace. They renew them, but
/// do not set `acquireTime` and `leaseTransitions`.
async fn a_lease_of_medik8s_is_held_by_it_and_then_expires(cluster: Cluster) {
    let node = cluster.name("n");
    let uid = cluster.create_node(&node).await;
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    let metadata = json!({"name": node, "ownerReferences": [owner]});
    let spec = json!({
        "holderIdentity": "node-maintenance",
        "renewTime": micros(noon()),
        "leaseDurationSeconds": 3600,
    });
    cluster.write_lease_with(metadata, spec).await;
    let end = noon_and(3600);

    let alice = cluster.holder_at(noon_and(60), "alice");
    let refused = refusal(alice.try_acquire(&node, &Acquire::new()).await);
    assert_eq!(refused.refusal, Refusal::Held);
    assert_eq!(refused.state, State::Held { until: end.into() });
    let lease = refused.lease.unwrap();
    assert_eq!(lease.holder(), Some("node-maintenance"));
    assert_eq!(lease.acquired(), None);
    assert_eq!(lease.lock_id(), None);

    let alice = cluster.holder_at(noon_and(3604), "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let since = Some(end.into());
    assert_eq!(change.state_before, State::Expired { since });
    let lease = change.lease.unwrap();
    assert_eq!(lease.transitions(), 1);
    assert_eq!(lease.last_holder(), Some("node-maintenance"));
}

async fn a_holder_that_writes_no_nonce_may_use_every_verb(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({
        "holderIdentity": "alice",
        "renewTime": micros(noon()),
        "leaseDurationSeconds": 60,
    });
    cluster.write_lease(&node, spec).await;
    let alice = cluster.holder_at(noon_and(30), "alice");
    let renewed = alice.renew(&node, &Renew::new()).await.unwrap();
    assert_eq!(renewed.until(), Some(noon_and(90).into()));
    assert_eq!(renewed.lock_id(), None);
    let lease: NodeLease = renewed.lease.unwrap();
    assert_eq!(lease.duration_seconds(), 60);
    let held = alice.hold(&node, &Hold::new("disk")).await.unwrap();
    assert!(held.lock_id().is_some());
    alice.unhold(&node, None).await.unwrap();
    let lease = cluster.lease(&node).await;
    assert_eq!(annotation(&lease, "last-holder"), "kubeadm:alice");
}

/// Leader election in client-go acquires an expired lock like any other: it writes the spec,
/// increments `leaseTransitions`, and does not change annotations.
async fn take_over_as_client_go(cluster: &Cluster, node: &str, holder: &str, time: i64) {
    let count = cluster.lease(node).await["spec"]["leaseTransitions"].as_i64();
    let spec = json!({
        "holderIdentity": holder,
        "acquireTime": micros(noon_and(time)),
        "renewTime": micros(noon_and(time)),
        "leaseDurationSeconds": 60,
        "leaseTransitions": count.unwrap() + 1,
    });
    cluster.patch_lease(node, json!({ "spec": spec })).await;
}

/// A node that bob and then alice acquired, both for 60 s. Returns her lock id as well.
async fn expired_lease_of_alice(cluster: &Cluster) -> (String, LockId) {
    let node = cluster.node("n").await;
    let minute = Acquire::new().duration(Duration::from_secs(60));
    let bob = cluster.holder_at(noon_and(-100), "bob");
    bob.try_acquire(&node, &minute).await.unwrap();
    let alice = cluster.holder_at(noon(), "alice");
    let minute = minute.reason("new kernel");
    let change = alice.try_acquire(&node, &minute).await.unwrap();
    let lease = change.lease.as_ref().unwrap();
    assert_eq!(lease.reason(), Some("new kernel"));
    assert_eq!(lease.last_holder(), Some("bob"));
    (node, change.lock_id().unwrap())
}

async fn a_new_holder_does_not_get_the_reason_of_the_old_one(cluster: Cluster) {
    let (node, lock_id) = expired_lease_of_alice(&cluster).await;
    let until = json!({"kubectl-maint.dev/hold-until": "2026-03-01T18:00:00Z"});
    cluster
        .patch_lease(&node, json!({"metadata": {"annotations": until}}))
        .await;
    take_over_as_client_go(&cluster, &node, "operator", 100).await;
    assert_eq!(
        annotation(&cluster.lease(&node).await, "reason"),
        "new kernel"
    );

    let alice = cluster.holder_at(noon_and(110), "alice");
    let lease = alice.get(&node).await.unwrap().unwrap();
    assert_eq!(lease.holder(), Some("operator"));
    assert_eq!(lease.reason(), None);
    assert_eq!(lease.hold_until(), None);
    assert_eq!(lease.last_holder(), None, "it was alice, not bob");
    assert_eq!(lease.lock_id(), None);
    let renew = Renew::new().lock_id(lock_id);
    let refused = refusal(alice.renew(&node, &renew).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);

    let carol = cluster.holder_at(noon_and(164), "carol");
    let change = carol.try_acquire(&node, &Acquire::new()).await.unwrap();
    let lock_id = change.lock_id().unwrap();
    assert_eq!(lock_id.transitions(), 4);
    let lease = cluster.lease(&node).await;
    let mark = format!("4-{}", lock_id.nonce());
    assert_eq!(annotation(&lease, "acquisition"), &mark);
    assert_eq!(annotation(&lease, "last-holder"), "operator");
    assert!(annotation(&lease, "reason").is_null());
    assert!(annotation(&lease, "hold-until").is_null());
}

async fn a_renewal_does_not_restore_what_the_last_holder_wrote(cluster: Cluster) {
    let (node, _) = expired_lease_of_alice(&cluster).await;
    take_over_as_client_go(&cluster, &node, "dave", 100).await;
    let dave = cluster.holder_at(noon_and(110), "dave");

    let renew = Renew::new().reason("disk");
    let lease = dave.renew(&node, &renew).await.unwrap().lease.unwrap();
    assert_eq!(lease.reason(), Some("disk"));
    assert_eq!(lease.last_holder(), None, "it was alice, not bob");
    assert_eq!(lease.lock_id(), None);
}

async fn the_reason_of_a_hold_made_by_hand_counts(cluster: Cluster) {
    let node = cluster.node("n").await;
    let annotations = json!({
        "kubectl-maint.dev/reason": "bad disk",
        "kubectl-maint.dev/hold-until": "2026-03-01T18:00:00Z",
    });
    let metadata = json!({"name": node, "annotations": annotations});
    let spec = json!({"holderIdentity": "kubeadm:alice", "leaseTransitions": 7});
    cluster.write_lease_with(metadata, spec).await;
    let lease = cluster.holder("bob").get(&node).await.unwrap().unwrap();
    assert_eq!(lease.reason(), Some("bad disk"));
    assert_eq!(lease.hold_until(), Some(noon_and(6 * 3600)));
    assert_eq!(lease.lock_id(), None);
}
