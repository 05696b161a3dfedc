//! The exact requests of each verb.

use std::time::Duration;

use maintenance_lease::{Acquire, DryRun, Hold, Maintenance, Release, Renew, RowDetail};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, Passing, Wire, refusal};

on_both_servers! {
    each_verb_needs_two_requests_or_three,
    a_refusal_needs_the_reads_alone,
    known_states_are_not_read_again,
    lists_are_one_request_each,
    every_change_is_a_patch_of_the_version_that_was_read,
    every_request_has_a_timeout_for_the_server,
    a_dry_run_writes_nothing,
}

on_both_servers! { alone: the_first_acquisition_in_a_cluster_makes_the_namespace_on_the_way }

const BEGIN: [&str; 3] = ["GET lease", "GET node", "PATCH lease"];
const GO_ON: [&str; 2] = ["GET lease", "PATCH lease"];

/// The requests that `verb` sends on this wire. Parallel reads may be in either order.
async fn count(wire: &Wire, verb: impl AsyncFnOnce()) -> Vec<String> {
    let before = wire.requests().len();
    verb().await;
    let mut requests = wire.requests().split_off(before);
    let reads = requests
        .iter()
        .take_while(|request| request.starts_with("GET"))
        .count();
    requests[..reads].sort();
    requests
}

async fn each_verb_needs_two_requests_or_three(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.make_namespace().await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let acquire = async || {
        alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    };
    let release = async || {
        alice.release(&node, &Release::new()).await.unwrap();
    };
    let made = count(&wire, acquire).await;
    assert_eq!(made, ["GET lease", "GET node", "POST lease"]);
    let renewed = count(&wire, async || {
        alice.renew(&node, &Renew::new()).await.unwrap();
    });
    assert_eq!(renewed.await, GO_ON);
    assert_eq!(count(&wire, release).await, GO_ON);
    assert_eq!(count(&wire, release).await, ["GET lease"], "already free");
    assert_eq!(count(&wire, acquire).await, BEGIN);
    let held = count(&wire, async || {
        alice.hold(&node, &Hold::new("disk")).await.unwrap();
    });
    assert_eq!(held.await, BEGIN);
    let unheld = count(&wire, async || {
        alice.unhold(&node, None).await.unwrap();
    });
    assert_eq!(unheld.await, GO_ON);
}

async fn the_first_acquisition_in_a_cluster_makes_the_namespace_on_the_way(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let requests = count(&wire, async || {
        alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    });
    // Others may have created the Lease once the namespace existed, so it is read again.
    assert_eq!(
        requests.await,
        [
            "GET lease",
            "GET node",
            "POST lease",
            "POST namespace",
            "GET lease",
            "POST lease",
        ]
    );
}

async fn a_refusal_needs_the_reads_alone(cluster: Cluster) {
    let node = cluster.node("n").await;
    let bob = cluster.holder("bob");
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let acquire = count(&wire, async || {
        refusal(alice.try_acquire(&node, &Acquire::new()).await);
    });
    assert_eq!(acquire.await, ["GET lease", "GET node"]);
    let release = count(&wire, async || {
        refusal(alice.release(&node, &Release::new()).await);
    });
    assert_eq!(release.await, ["GET lease"]);
}

async fn known_states_are_not_read_again(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let seen = alice.read(&node, true).await.unwrap();
    let acquired = count(&wire, async || {
        let acquire = Acquire::new();
        let change = alice.try_acquire(seen, &acquire).await;
        change.unwrap();
    });
    assert_eq!(acquired.await, ["PATCH lease"]);
    let confirmed = alice.get(&node).await.unwrap().unwrap();
    let broken = count(&wire, async || {
        let change = alice.force_release(&confirmed, &Release::new()).await;
        change.unwrap();
    });
    assert_eq!(broken.await, ["PATCH lease"]);
}

async fn lists_are_one_request_each(cluster: Cluster) {
    let (one, other) = (cluster.node("one").await, cluster.node("other").await);
    cluster.write_lease(&one, json!({})).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let leases = alice.list().await.unwrap();
    assert!(leases.contains_key(&one));
    assert!(!leases.contains_key(&other));
    let nodes = alice.nodes(None, RowDetail::Metadata).await.unwrap();
    let named = |name: &str| nodes.iter().find(|row| row.name == name).unwrap();
    assert_ne!(named(&one).uid, named(&other).uid);
    assert_eq!(wire.requests(), ["GET lease", "GET node"]);
}

async fn all_verbs(alice: &Maintenance, node: &str) {
    alice.try_acquire(node, &Acquire::new()).await.unwrap();
    alice.renew(node, &Renew::new()).await.unwrap();
    alice.hold(node, &Hold::new("disk")).await.unwrap();
    alice.unhold(node, None).await.unwrap();
    alice.try_acquire(node, &Acquire::new()).await.unwrap();
    alice.release(node, &Release::new()).await.unwrap();
}

async fn every_change_is_a_patch_of_the_version_that_was_read(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::clear();
    all_verbs(&cluster.holder_on(&wire, "alice"), &node).await;
    let passed = wire.passed();
    let writes: Vec<&Passing> = passed.iter().filter(|passing| passing.is_write()).collect();
    assert_eq!(writes.len(), 6);
    for write in writes {
        assert_eq!(write.what(), "PATCH lease");
        let version = &write.body["metadata"]["resourceVersion"];
        assert!(version.is_string(), "{}", write.body);
        assert!(write.query.contains("fieldManager=maintenance-lease"));
    }
    for read in passed.iter().filter(|passing| !passing.is_write()) {
        assert!(!read.query.contains("resourceVersion"), "{}", read.query);
    }
}

async fn every_request_has_a_timeout_for_the_server(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    all_verbs(&cluster.holder_on(&wire, "alice"), &node).await;
    for passing in wire.passed() {
        assert!(passing.query.contains("timeout=10s"), "{}", passing.query);
    }
    let wire = Wire::clear();
    let patient = cluster.builder_on(&wire, "alice").request_timeout(None);
    all_verbs(&patient.build().unwrap(), &node).await;
    for passing in wire.passed() {
        assert!(!passing.query.contains("timeout"), "{}", passing.query);
    }
    // The server does not accept a timeout that it can't express in nanoseconds.
    let endless = cluster
        .builder("alice")
        .request_timeout(Some(Duration::MAX));
    all_verbs(&endless.build().unwrap(), &node).await;
}

async fn a_dry_run_writes_nothing(cluster: Cluster) {
    let node = cluster.node("n").await;
    let before = cluster.write_lease(&node, json!({})).await;
    for (dry_run, writes) in [(DryRun::Client, 0), (DryRun::Server, 1)] {
        let wire = Wire::clear();
        let alice = cluster.builder_on(&wire, "alice").dry_run(dry_run);
        let change = alice
            .build()
            .unwrap()
            .try_acquire(&node, &Acquire::new())
            .await;
        assert_eq!(change.unwrap().lease.unwrap().holder(), Some("alice"));
        assert_eq!(wire.passed().last().unwrap().writes, writes);
        assert_eq!(cluster.lease(&node).await, before, "{dry_run:?}");
    }
    let absent = cluster.node("absent").await;
    let alice = cluster.builder("alice").dry_run(DryRun::Server);
    let alice = alice.build().unwrap();
    alice.try_acquire(&absent, &Acquire::new()).await.unwrap();
    assert_eq!(cluster.lease(&absent).await, Value::Null);
}
