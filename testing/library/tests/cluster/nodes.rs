//! The Node of a Lease: it owns the Lease, which is deleted with it.

use maintenance_lease::protocol::{Refusal, State};
use maintenance_lease::{Acquire, Done, Error, Hold, Release, Renew, SideEffect};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, Fate, NODES, Wire, refusal};

on_both_servers! {
    deleting_the_node_collects_the_lease_and_a_new_node_starts_free,
    a_lease_deleted_under_its_holder_is_not_held,
    a_node_that_was_made_anew_since_it_was_seen_owns_what_begins,
    nothing_begins_on_a_node_that_is_not_there,
    nothing_begins_on_a_node_in_deletion,
    a_lock_can_be_ended_without_its_node,
}

on_both_servers! { alone:
    acquiring_corrects_the_owner_of_an_earlier_nodes_lease,
    a_corrected_owner_is_not_replaced_by_an_earlier_node,
    a_hold_owns_as_an_acquisition_does,
}

async fn deleting_the_node_collects_the_lease_and_a_new_node_starts_free(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let first = alice.try_acquire(&node, &Acquire::new()).await.unwrap();

    cluster.delete(&format!("{NODES}/{node}")).await;
    cluster.lease_gone(&node).await;

    let refused = refusal(alice.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
    cluster.create_node(&node).await;
    let bob = cluster.holder("bob");
    assert!(bob.get(&node).await.unwrap().is_none());
    let second = bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(second.state_before, State::Free);
    assert_eq!(second.lease.as_ref().unwrap().transitions(), 1);

    // The lock id of the old holder belongs to another Lease, although the transitions are the
    // same.
    let stale = Renew::new().lock_id(first.lock_id().unwrap());
    let refused = refusal(alice.renew(&node, &stale).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
}

async fn a_lease_deleted_under_its_holder_is_not_held(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    cluster.delete_lease(&node).await;

    let refused = refusal(alice.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
    assert!(refused.lease.is_none());
    let with_token = Renew::new().lock_id(change.lock_id().unwrap());
    let refused = refusal(alice.renew(&node, &with_token).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
    let change = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(change.done, Done::AlreadyFree);
    assert_eq!(cluster.lease(&node).await, Value::Null);
}

async fn a_node_that_was_made_anew_since_it_was_seen_owns_what_begins(cluster: Cluster) {
    let node = cluster.node("n").await;
    let bob = cluster.holder("bob");
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let alice = cluster.holder("alice");
    let seen = alice.read(&node, true).await.unwrap();
    let options = Hold::new("disk").take_over(seen.lease.clone());

    cluster.delete(&format!("{NODES}/{node}")).await;
    cluster.lease_gone(&node).await;
    let on_nothing = alice.hold(seen.clone(), &options).await;
    assert!(matches!(on_nothing, Err(Error::NodeNotFound(name)) if name == node));

    let uid = cluster.create_node(&node).await;
    alice.hold(seen, &options).await.unwrap();
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], uid);
}

async fn nothing_begins_on_a_node_that_is_not_there(cluster: Cluster) {
    let node = cluster.name("ghost");
    let alice = cluster.holder("alice");
    let acquired = alice.try_acquire(&node, &Acquire::new()).await;
    assert_eq!(
        acquired.unwrap_err().to_string(),
        format!(r#"Error from server (NotFound): nodes "{node}" not found"#)
    );
    let held = alice.hold(&node, &Hold::new("disk")).await;
    assert!(matches!(held, Err(Error::NodeNotFound(name)) if name == node));
    assert_eq!(cluster.lease(&node).await, Value::Null);
}

async fn nothing_begins_on_a_node_in_deletion(cluster: Cluster) {
    let node = cluster.node("n").await;
    let path = format!("{NODES}/{node}");
    let finalizers = json!(["example.com/looks-first"]);
    cluster
        .patch(&path, json!({"metadata": {"finalizers": finalizers}}))
        .await;
    cluster.delete(&path).await;
    let alice = cluster.holder("alice");
    let acquired = alice.try_acquire(&node, &Acquire::new()).await;
    assert!(matches!(acquired, Err(Error::NodeDeleting(name)) if name == node));
    let held = alice.hold(&node, &Hold::new("disk")).await;
    assert!(matches!(held, Err(Error::NodeDeleting(_))));
    assert_eq!(cluster.lease(&node).await, Value::Null);
    cluster
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

/// The Lease has no owner reference, so it is not deleted with its node.
async fn a_lock_can_be_ended_without_its_node(cluster: Cluster) {
    let node = cluster.name("ghost");
    let spec = json!({
        "holderIdentity": "alice",
        "renewTime": cluster.ago(0),
        "leaseDurationSeconds": 600,
    });
    cluster.write_lease(&node, spec).await;
    let alice = cluster.holder("alice");
    let renewed = alice.renew(&node, &Renew::new()).await.unwrap();
    assert_eq!(renewed.done, Done::Renewed);
    let released = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(released.done, Done::Released);
}

/// There is no controller manager, so the Lease of the earlier node is not deleted during this
/// test.
async fn acquiring_corrects_the_owner_of_an_earlier_nodes_lease(cluster: Cluster) {
    let node = cluster.name("n");
    let uid = cluster.create_node(&node).await;
    let other = cluster.name("other");
    let other_uid = cluster.create_node(&other).await;
    let owner = |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
    let earlier = owner(&node, "6b8a5e0e-1c9a-4f0e-9c67-000000000000");
    let rack = owner(&other, &other_uid);
    let metadata = json!({"name": node, "ownerReferences": [earlier, rack]});
    cluster.write_lease_with(metadata, json!({})).await;

    let alice = cluster.holder("alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();

    assert_eq!(change.side_effects, []);
    let lease = cluster.lease(&node).await;
    assert_eq!(
        lease["metadata"]["ownerReferences"],
        json!([rack, owner(&node, &uid)])
    );
    let written = change.lease.unwrap().resource_version().to_string();
    assert_eq!(lease["metadata"]["resourceVersion"], written, "one write");
}

/// Somebody else corrects the owner after alice has read the Node.
async fn a_corrected_owner_is_not_replaced_by_an_earlier_node(cluster: Cluster) {
    let node = cluster.name("n");
    cluster.create_node(&node).await;
    let bob = cluster.holder("bob");
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    bob.release(&node, &Release::new()).await.unwrap();
    let (other, again) = (cluster.clone(), node.clone());
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        other.delete(&format!("{NODES}/{again}")).await;
        other.create_node(&again).await;
        bob.try_acquire(&again, &Acquire::new()).await.unwrap();
        bob.release(&again, &Release::new()).await.unwrap();
    })));

    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();

    let uid = change.row.expect("the Node").uid;
    let present = cluster.read(&format!("{NODES}/{node}")).await;
    assert_eq!(present["metadata"]["uid"], uid);
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], uid);
}

async fn a_hold_owns_as_an_acquisition_does(cluster: Cluster) {
    let node = cluster.name("n");
    let uid = cluster.create_node(&node).await;
    let alice = cluster.holder("alice");
    let change = alice.hold(&node, &Hold::new("disk")).await.unwrap();
    assert_eq!(
        change.side_effects,
        [SideEffect::NamespaceCreated, SideEffect::LeaseCreated]
    );
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], uid);
    assert_eq!(lease["spec"]["holderIdentity"], "kubeadm:alice");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], i32::MAX);
}
