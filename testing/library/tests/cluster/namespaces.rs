//! The namespace of the Leases: it is created if necessary, and may be missing or terminating.

use http::StatusCode;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Acquire, Done, DryRun, Error, Hold, Release, Renew, SideEffect};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, Fate, NAMESPACE_PATH, Wire, refusal};

on_both_servers! { alone:
    without_it_every_node_is_free,
    two_clients_that_create_it_at_once_both_succeed,
    in_a_terminating_one_nothing_is_made,
    in_a_terminating_one_existing_leases_still_work,
    deleted_before_a_creation_it_is_made_again,
    deleted_with_the_lease_before_a_patch_it_is_made_again,
    deleted_under_a_holder_nothing_is_held,
    a_creation_that_fails_for_a_moment_is_retried,
    a_dry_run_on_the_server_makes_none,
    the_caller_can_forbid_its_creation,
}

async fn without_it_every_node_is_free(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    assert!(alice.get(&node).await.unwrap().is_none());
    assert!(alice.list().await.unwrap().is_empty());
    let change = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(change.done, Done::AlreadyFree);
    let change = alice.unhold(&node, None).await.unwrap();
    assert_eq!(change.done, Done::AlreadyFree);
    let refused = refusal(alice.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
}

/// A wire on which `something` happens before the first request that `what` names.
fn before<F>(what: &'static str, something: F) -> Wire
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut something = Some(something);
    Wire::planned(move |passing| match something.take() {
        Some(something) if passing.what() == what => Fate::Meanwhile(Box::pin(something)),
        later => {
            something = later;
            Fate::Pass
        }
    })
}

async fn two_clients_that_create_it_at_once_both_succeed(cluster: Cluster) {
    let (one, other) = (cluster.node("one").await, cluster.node("other").await);
    let bob = cluster.holder("bob");
    let wire = before("POST namespace", async move {
        let change = bob.try_acquire(&other, &Acquire::new()).await.unwrap();
        let made = [SideEffect::NamespaceCreated, SideEffect::LeaseCreated];
        assert_eq!(change.side_effects, made);
    });
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&one, &Acquire::new()).await.unwrap();
    assert_eq!(change.side_effects, [SideEffect::LeaseCreated]);
}

async fn in_a_terminating_one_nothing_is_made(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.make_namespace().await;
    cluster.delete(NAMESPACE_PATH).await;
    let alice = cluster.holder("alice");
    let error = alice.try_acquire(&node, &Acquire::new()).await;
    assert!(
        matches!(error, Err(Error::NamespaceTerminating(_))),
        "{error:?}"
    );
    let error = alice.hold(&node, &Hold::new("disk")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "namespace kube-node-maintenance is being deleted: no Lease can be created in it"
    );
}

async fn in_a_terminating_one_existing_leases_still_work(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    cluster.delete(NAMESPACE_PATH).await;
    alice.renew(&node, &Renew::new()).await.unwrap();
    alice.release(&node, &Release::new()).await.unwrap();
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.lease.unwrap().transitions(), 2);
}

async fn deleted_before_a_creation_it_is_made_again(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.make_namespace().await;
    let other = cluster.clone();
    let wire = before("POST lease", async move { other.remove_namespace().await });
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let made = [SideEffect::NamespaceCreated, SideEffect::LeaseCreated];
    assert_eq!(change.side_effects, made);
}

async fn deleted_with_the_lease_before_a_patch_it_is_made_again(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster
        .write_lease(&node, json!({"leaseTransitions": 7}))
        .await;
    let other = cluster.clone();
    let wire = before("PATCH lease", async move { other.remove_namespace().await });
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let made = [SideEffect::NamespaceCreated, SideEffect::LeaseCreated];
    assert_eq!(change.side_effects, made);
    assert_eq!(change.lease.unwrap().transitions(), 1);
}

async fn deleted_under_a_holder_nothing_is_held(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let other = cluster.clone();
    let wire = before("PATCH lease", async move { other.remove_namespace().await });
    let alice = cluster.holder_on(&wire, "alice");
    let refused = refusal(alice.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
    assert!(!wire.requests().contains(&"POST namespace".to_owned()));
}

async fn a_creation_that_fails_for_a_moment_is_retried(cluster: Cluster) {
    let node = cluster.node("n").await;
    let mut fates = vec![
        Fate::answer_lost(),
        Fate::Refused(StatusCode::SERVICE_UNAVAILABLE, None),
        Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(1)),
        Fate::Reset,
    ];
    let wire = Wire::planned(move |passing| match &*passing.what() {
        "POST namespace" => fates.pop().unwrap_or(Fate::Pass),
        _ => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.done, Done::Acquired);
    let requests = wire.requests();
    let creations = requests.iter().filter(|what| *what == "POST namespace");
    assert_eq!(creations.count(), 4, "{requests:?}");
}

async fn a_dry_run_on_the_server_makes_none(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.builder("alice").dry_run(DryRun::Server);
    let alice = alice.build().unwrap();
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.side_effects, [SideEffect::NamespaceCreated]);
    let again = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(
        again.side_effects,
        [SideEffect::NamespaceCreated],
        "it is not there"
    );
    assert_eq!(cluster.lease(&node).await, Value::Null);
}

async fn the_caller_can_forbid_its_creation(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    alice.set_creates_namespace(false);
    for error in [
        alice.try_acquire(&node, &Acquire::new()).await.unwrap_err(),
        alice.hold(&node, &Hold::new("disk")).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::NamespaceMissing(_)), "{error:?}");
    }
    assert!(!wire.requests().contains(&"POST namespace".to_owned()));
    alice.clone().set_creates_namespace(true);
    alice.try_acquire(&node, &Acquire::new()).await.unwrap();
}
