//! A lock id, a confirmation and a repeated decision are valid for one acquisition only.

use std::time::Duration;

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Acquire, Done, Hold, Maintenance, NodeLease, Release, Renew};
use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, annotation, micros, refusal};

on_both_servers! {
    a_refusal_says_who_since_when_until_when_and_why,
    a_lock_id_is_valid_for_one_acquisition_only,
    a_lock_id_of_a_lease_that_was_created_again_is_refused,
    a_renewal_replaces_the_reason_only_if_it_has_one,
    a_renewal_never_shortens,
    reentry_keeps_the_acquisition_it_enters,
    force_breaks_the_acquisition_that_was_confirmed_however_often_renewed,
    force_does_not_break_another_acquisition,
    a_take_over_is_from_the_holder_that_was_confirmed,
    an_unhold_is_of_the_hold_that_was_confirmed,
    a_lock_that_changes_hands_between_read_and_write_is_not_touched,
    the_same_holder_acquiring_again_is_another_acquisition,
}

async fn seen(maintenance: &Maintenance, node: &str) -> NodeLease {
    maintenance.get(node).await.unwrap().expect("a Lease")
}

/// Makes the acquisition of `node` expire, as if an hour had passed.
async fn let_expire(cluster: &Cluster, node: &str) {
    let spec = json!({"acquireTime": cluster.ago(3600), "renewTime": cluster.ago(3600)});
    cluster.patch_lease(node, json!({"spec": spec})).await;
}

async fn a_refusal_says_who_since_when_until_when_and_why(cluster: Cluster) {
    let node = cluster.node("n").await;
    let options = Acquire::new()
        .reason("new\tkernel")
        .duration(Duration::from_secs(600));
    let held = cluster
        .holder("bob\u{202e}@bastion")
        .try_acquire(&node, &options)
        .await;
    let held = held.unwrap().lease.unwrap();

    let refused = refusal(
        cluster
            .holder("alice")
            .try_acquire(&node, &Acquire::new())
            .await,
    );

    assert_eq!(
        refused.to_string(),
        format!(r"node/{node} is held by bob\u{{202e}}@bastion")
    );
    let lease = refused.lease.unwrap();
    assert_eq!(lease.holder(), Some("bob\u{202e}@bastion"));
    assert_eq!(lease.acquired(), held.acquired());
    assert!(held.acquired().is_some());
    assert_eq!(lease.reason(), Some("new\tkernel"));
    let end = held.renewed().unwrap() + Duration::from_secs(600);
    let until = end.into();
    assert_eq!(
        refused.state,
        maintenance_lease::protocol::State::Held { until }
    );
    let stored = cluster.lease(&node).await;
    assert_eq!(stored["spec"]["renewTime"], micros(held.renewed().unwrap()));
}

async fn a_lock_id_is_valid_for_one_acquisition_only(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let acquire = Acquire::new();
    let first = alice.try_acquire(&node, &acquire).await.unwrap();
    let first = first.lock_id().unwrap();
    alice
        .release(&node, &Release::new().lock_id(first.clone()))
        .await
        .unwrap();
    let again = Release::new().lock_id(first.clone());
    let change = alice.release(&node, &again).await.unwrap();
    assert_eq!(change.done, Done::AlreadyFree);

    let second = alice.try_acquire(&node, &acquire).await.unwrap();
    let second = second.lock_id().unwrap();
    assert_ne!(first, second);
    let before = cluster.lease(&node).await;
    let stale = Renew::new().lock_id(first.clone());
    let refused = refusal(alice.renew(&node, &stale).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    let stale = Release::new().lock_id(first);
    let refused = refusal(alice.release(&node, &stale).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    assert_eq!(cluster.lease(&node).await, before);

    // A lock id can be passed through a script as text.
    let second = second.to_string().parse().unwrap();
    alice
        .renew(&node, &Renew::new().lock_id(second))
        .await
        .unwrap();
}

/// As after a backup is restored: the holder, transitions and nonce are the same as before.
async fn a_lock_id_of_a_lease_that_was_created_again_is_refused(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let lease = cluster.lease(&node).await;
    cluster.delete_lease(&node).await;
    let annotations = &lease["metadata"]["annotations"];
    let metadata = json!({"name": node, "annotations": annotations});
    cluster
        .write_lease_with(metadata, lease["spec"].clone())
        .await;
    let release = Release::new().lock_id(change.lock_id().unwrap());
    let refused = refusal(alice.release(&node, &release).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
}

async fn a_renewal_replaces_the_reason_only_if_it_has_one(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let acquire = Acquire::new().reason("kernel");
    alice.try_acquire(&node, &acquire).await.unwrap();
    let kept = alice.renew(&node, &Renew::new()).await.unwrap();
    assert_eq!(kept.lease.unwrap().reason(), Some("kernel"));
    let renew = Renew::new().reason("disk");
    let replaced = alice.renew(&node, &renew).await.unwrap();
    assert_eq!(replaced.lease.unwrap().reason(), Some("disk"));
}

async fn a_renewal_never_shortens(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let acquired = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let renew = Renew::new().duration(Duration::from_secs(1));
    let renewed = alice.renew(&node, &renew).await.unwrap();
    assert!(renewed.until() >= acquired.until());
    let renew = Renew::new().duration(Duration::from_secs(3600));
    let lease = alice.renew(&node, &renew).await.unwrap().lease.unwrap();
    assert_eq!(lease.duration_seconds(), 3600);
}

async fn reentry_keeps_the_acquisition_it_enters(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let acquire = Acquire::new().reason("outer script");
    let outer = alice.try_acquire(&node, &acquire).await.unwrap();
    let refused = refusal(alice.try_acquire(&node, &acquire).await);
    assert_eq!(refused.refusal, Refusal::HeldByCaller);
    assert_eq!(refused.lease.unwrap().reason(), Some("outer script"));

    let reentry = Acquire::new().reentry(true);
    let inner = alice.try_acquire(&node, &reentry).await.unwrap();
    assert_eq!(inner.done, Done::Renewed);
    assert_eq!(inner.lock_id(), outer.lock_id());
    assert_eq!(inner.fencing, None);
}

async fn force_breaks_the_acquisition_that_was_confirmed_however_often_renewed(cluster: Cluster) {
    let node = cluster.node("n").await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let confirmed = seen(&alice, &node).await;
    bob.renew(&node, &Renew::new()).await.unwrap();

    let why = Release::new().reason("bob is on a plane");
    let change = alice.force_release(&confirmed, &why).await.unwrap();

    assert_eq!(change.done, Done::Released);
    assert_eq!(change.before.unwrap().holder(), Some("bob"));
    let lease = cluster.lease(&node).await;
    assert_eq!(annotation(&lease, "last-holder"), "bob");
    assert_eq!(annotation(&lease, "reason"), "bob is on a plane");
    let refused = refusal(bob.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
}

async fn force_does_not_break_another_acquisition(cluster: Cluster) {
    let node = cluster.node("n").await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let confirmed = seen(&alice, &node).await;
    bob.release(&node, &Release::new()).await.unwrap();
    let change = alice.force_release(&confirmed, &Release::new()).await;
    assert_eq!(change.unwrap().done, Done::AlreadyFree);

    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let before = cluster.lease(&node).await;
    let refused = refusal(alice.force_release(&confirmed, &Release::new()).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    assert_eq!(
        refused.to_string(),
        format!("node/{node} was acquired again by bob")
    );
    assert_eq!(cluster.lease(&node).await, before);
}

async fn a_take_over_is_from_the_holder_that_was_confirmed(cluster: Cluster) {
    let node = cluster.node("n").await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let confirmed = seen(&alice, &node).await;
    let carol = cluster.holder("carol");
    bob.release(&node, &Release::new()).await.unwrap();
    carol.try_acquire(&node, &Acquire::new()).await.unwrap();

    let hold = Hold::new("disk").take_over([confirmed]);
    let refused = refusal(alice.hold(&node, &hold).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    assert_eq!(refused.lease.unwrap().holder(), Some("carol"));

    let hold = hold.take_over([seen(&alice, &node).await]);
    let change = alice.hold(&node, &hold).await;
    assert_eq!(change.unwrap().before.unwrap().holder(), Some("carol"));
    let refused = refusal(carol.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHolder);
}

async fn an_unhold_is_of_the_hold_that_was_confirmed(cluster: Cluster) {
    let node = cluster.node("n").await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    bob.hold(&node, &Hold::new("disk")).await.unwrap();
    let confirmed = seen(&alice, &node).await;
    bob.unhold(&node, None).await.unwrap();
    bob.hold(&node, &Hold::new("another disk")).await.unwrap();

    let refused = refusal(alice.unhold(&node, Some(&confirmed)).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    assert_eq!(refused.lease.unwrap().reason(), Some("another disk"));

    let confirmed = seen(&alice, &node).await;
    // Only the reason changes. It stays the same hold.
    bob.hold(&node, &Hold::new("both disks")).await.unwrap();
    let change = alice.unhold(&node, Some(&confirmed)).await;
    assert_eq!(change.unwrap().done, Done::Released);
}

/// The lock of alice expires after her verb has read it, and bob acquires it before her write.
async fn a_lock_that_changes_hands_between_read_and_write_is_not_touched(cluster: Cluster) {
    let node = cluster.node("n").await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    for verb in ["renew", "release"] {
        alice.try_acquire(&node, &Acquire::new()).await.unwrap();
        let_expire(&cluster, &node).await;
        let (taker, taken) = (bob.clone(), node.clone());
        let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
            taker.try_acquire(&taken, &Acquire::new()).await.unwrap();
        })));
        let alice = cluster.holder_on(&wire, "alice");
        let result = match verb {
            "renew" => alice.renew(&node, &Renew::new()).await,
            _ => alice.release(&node, &Release::new()).await,
        };
        let refused = refusal(result);
        assert_eq!(refused.refusal, Refusal::ChangedHands, "{verb}");
        assert_eq!(refused.lease.unwrap().holder(), Some("bob"));
        assert_eq!(
            cluster.lease(&node).await["spec"]["holderIdentity"],
            "bob",
            "{verb}"
        );
        bob.release(&node, &Release::new()).await.unwrap();
    }
}

async fn the_same_holder_acquiring_again_is_another_acquisition(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let (colleague, taken) = (alice.clone(), node.clone());
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        colleague.release(&taken, &Release::new()).await.unwrap();
        let acquire = Acquire::new().reason("a colleague's work");
        colleague.try_acquire(&taken, &acquire).await.unwrap();
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let refused = refusal(alice.release(&node, &Release::new()).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    let lease = refused.lease.unwrap();
    assert_eq!(lease.reason(), Some("a colleague's work"));
}
