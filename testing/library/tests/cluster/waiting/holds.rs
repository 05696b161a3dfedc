//! Administrators' holds: a waiter waits for their end, but no time ends them.

use std::time::Duration;

use maintenance_lease::Acquire;
use maintenance_lease::protocol::Refusal;
use serde_json::json;

use super::{Waiting, held_by_bob, release};
use crate::on_both_servers;
use crate::support::{Cluster, Wire, in_the_sandbox};

on_both_servers! {
    a_hold_ends_by_its_end_alone,
    a_hold_waits_for_a_lease,
    ones_own_lease_is_made_a_hold_at_once,
}

async fn a_hold_ends_by_its_end_alone(cluster: Cluster) {
    let node = old_hold(&cluster).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let blocked = waiting.blocked().await;
    assert_eq!(blocked.refused.refusal, Refusal::AdminHold);
    assert_eq!(blocked.earliest, None);
    cluster.holder("bob").unhold(&node, None).await.unwrap();
    waiting.acquires().await;
}

/// Creates a hold that was made by hand, with times that have long passed.
async fn old_hold(cluster: &Cluster) -> String {
    let node = cluster.node("n").await;
    let spec = json!({
        "holderIdentity": "kubeadm:bob",
        "leaseDurationSeconds": 1,
        "acquireTime": cluster.ago(9_000),
        "renewTime": cluster.ago(9_000),
    });
    cluster.write_lease(&node, spec).await;
    node
}

#[test]
fn no_time_ends_a_hold() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let node = old_hold(&cluster).await;
        let wire = Wire::clear();
        let alice = cluster.holder_on(&wire, "alice");
        let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
        waiting.blocked().await;
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        assert_eq!(wire.passed().last().unwrap().writes, 0);
        let reads = wire.requests();
        let watches = reads.iter().filter(|what| *what == "WATCH lease").count();
        assert_eq!(reads.len(), watches + 2, "nothing but watches: {reads:?}");
        waiting.task.abort();
    });
}

async fn a_hold_waits_for_a_lease(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let mut waiting = Waiting::to_hold(&cluster.holder("alice"), &node);
    assert_eq!(waiting.blocked().await.refused.refusal, Refusal::Held);
    release(&bob, &node).await;
    let change = waiting.acquires().await;
    assert_eq!(change.lease.unwrap().holder(), Some("kubeadm:alice"));
}

async fn ones_own_lease_is_made_a_hold_at_once(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let change = Waiting::to_hold(&bob, &node).acquires().await;
    assert_eq!(change.lease.unwrap().holder(), Some("kubeadm:bob"));
}
