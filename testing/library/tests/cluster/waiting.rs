//! Waiting for a lock: one watch, one timer, and one write each time the lock becomes free.

mod holds;
mod races;
mod watching;

use std::future::pending;
use std::time::Duration;

use maintenance_lease::protocol::{Refusal, State};
use maintenance_lease::{
    Acquire, Blocked, Change, Done, Error, Hold, Maintenance, Progress, Release, Renew, SideEffect,
};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, NODES, Passing, TIME_LIMIT, Wire, in_the_sandbox, refusal};

on_both_servers! {
    free_locks_are_acquired_at_once,
    a_release_hands_over_by_one_write_on_the_version_that_the_watch_brought,
    known_leases_are_written_at_once,
    leases_changed_since_are_written_as_the_watch_shows_them,
    a_lease_that_is_deleted_is_made_anew,
    a_node_that_is_deleted_ends_the_wait,
    a_node_that_is_created_anew_is_acquired_anew,
    a_node_that_was_replaced_during_the_wait_owns_the_lease,
    a_hold_of_ones_own_is_read_again_before_it_is_entered,
    a_lock_with_an_unreadable_time_never_expires,
    one_identity_waits_for_itself,
    a_renewal_is_reported_as_the_same_blocker_with_a_later_end,
    an_observed_change_gives_the_holder_the_stated_duration,
    dropped_while_it_waits_it_leaves_no_write,
    dropped_while_it_writes_it_leaves_a_write_of_unknown_fate,
}

on_both_servers! {
    alone: leases_of_an_election_are_not_waited_for,
}

/// A report of a waiter.
#[derive(Debug)]
enum Told {
    Blocked(Box<Blocked>),
    Unwatched(String),
}

/// A waiter in progress.
struct Waiting {
    task: JoinHandle<Result<Change, Error>>,
    told: UnboundedReceiver<Told>,
}

impl Waiting {
    /// Lets `who` wait for `node` and acquire it.
    fn to_acquire(who: &Maintenance, node: &str, options: Acquire) -> Self {
        let (sender, told) = unbounded_channel();
        let (who, node) = (who.clone(), node.to_owned());
        let task = tokio::spawn(async move {
            let tell = |progress: Progress<'_>| tell(&sender, progress);
            who.acquire_when_free(&node, &options, tell).await
        });
        Self { task, told }
    }

    fn to_hold(who: &Maintenance, node: &str) -> Self {
        let (sender, told) = unbounded_channel();
        let (who, node) = (who.clone(), node.to_owned());
        let task = tokio::spawn(async move {
            let tell = |progress: Progress<'_>| tell(&sender, progress);
            who.hold_when_free(&node, &Hold::new("disk"), tell).await
        });
        Self { task, told }
    }

    /// The next report.
    async fn next(&mut self) -> Told {
        self.told.recv().await.expect("it waits")
    }

    /// The next report, which must name the holder that blocks the waiter.
    async fn blocked(&mut self) -> Blocked {
        match self.next().await {
            Told::Blocked(blocked) => *blocked,
            Told::Unwatched(why) => panic!("it can't watch: {why}"),
        }
    }

    async fn ends(self) -> Result<Change, Error> {
        self.task.await.expect("it does not panic")
    }

    async fn acquires(self) -> Change {
        let change = self.ends().await.expect("it acquires");
        assert_eq!(change.done, Done::Acquired);
        change
    }
}

fn tell(told: &tokio::sync::mpsc::UnboundedSender<Told>, progress: Progress<'_>) {
    let progress = match progress {
        Progress::Blocked(blocked) => Told::Blocked(Box::new(blocked.clone())),
        Progress::Unwatched(why) => Told::Unwatched(why.to_string()),
        // The watch may or may not resume before the Lease is acquired.
        Progress::Watched => return,
        other => panic!("{other:?}"),
    };
    // The test may have ended.
    let _ = told.send(progress);
}

/// Creates a node that bob has locked, and returns the node and bob.
async fn held_by_bob(cluster: &Cluster) -> (String, Maintenance) {
    let node = cluster.node("n").await;
    let bob = cluster.holder("bob");
    let disk = Acquire::new().reason("disk");
    bob.try_acquire(&node, &disk).await.unwrap();
    (node, bob)
}

/// Creates a Lease whose holder is gone, and which can be acquired in about one second.
async fn about_to_expire(cluster: &Cluster, node: &str) {
    let spec = json!({
        "holderIdentity": "bob",
        "leaseDurationSeconds": 1,
        "acquireTime": cluster.ago(3),
        "renewTime": cluster.ago(3),
        "leaseTransitions": 1,
    });
    let of = cluster.read(&format!("{NODES}/{node}")).await;
    let uid = &of["metadata"]["uid"];
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    let metadata = json!({"name": node, "ownerReferences": [owner]});
    cluster.write_lease_with(metadata, spec).await;
}

async fn release(holder: &Maintenance, node: &str) -> Change {
    holder.release(node, &Release::new()).await.unwrap()
}

async fn free_locks_are_acquired_at_once(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let change = alice
        .acquire_when_free(&node, &Acquire::new(), |progress| panic!("{progress:?}"))
        .await;
    assert_eq!(change.unwrap().lease.unwrap().holder(), Some("alice"));
}

async fn a_release_hands_over_by_one_write_on_the_version_that_the_watch_brought(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let blocked = waiting.blocked().await;
    assert_eq!(blocked.refused.refusal, Refusal::Held);
    let lease = blocked.refused.lease.expect("the Lease that is held");
    assert_eq!(
        (lease.holder(), lease.reason()),
        (Some("bob"), Some("disk"))
    );
    let State::Held { until } = blocked.refused.state else {
        panic!("{:?}", blocked.refused.state)
    };
    assert!(blocked.earliest.expect("it ends") > until);

    let released = release(&bob, &node).await.lease.unwrap();
    let change = waiting.acquires().await;
    assert_eq!(change.lease.unwrap().transitions(), 2);
    let mut requests = wire.requests();
    requests[..2].sort();
    assert_eq!(
        requests,
        ["GET lease", "GET node", "WATCH lease", "PATCH lease"]
    );
    assert_eq!(written_on(&wire), released.resource_version().to_string());
}

async fn known_leases_are_written_at_once(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let seen = alice.read(&node, true).await.unwrap();
    let version = seen.lease.as_ref().expect("a Lease").resource_version();
    let reads = wire.requests().len();
    let options = Acquire::new();
    let acquired = alice.acquire_when_free(seen, &options, |progress| panic!("{progress:?}"));
    assert_eq!(acquired.await.unwrap().done, Done::Acquired);
    assert_eq!(wire.requests()[reads..], ["PATCH lease"]);
    assert_eq!(written_on(&wire), version.to_string());
}

async fn leases_changed_since_are_written_as_the_watch_shows_them(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let seen = alice.read(&node, true).await.unwrap();
    let bob = cluster.holder("bob");
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let released = release(&bob, &node).await.lease.expect("a Lease");
    let reads = wire.requests().len();
    let options = Acquire::new();
    let acquired = alice.acquire_when_free(seen, &options, |_| ());
    assert_eq!(acquired.await.unwrap().lease.unwrap().transitions(), 2);
    let requests = wire.requests().split_off(reads);
    assert!(!requests.contains(&"GET node".to_owned()), "{requests:?}");
    assert_eq!(requests[..2], ["PATCH lease", "WATCH lease"]);
    assert_eq!(written_on(&wire), released.resource_version().to_string());
}

/// The resource version of the last write.
fn written_on(wire: &Wire) -> String {
    let write = wire.passed().into_iter().rfind(Passing::is_write);
    let body = write.expect("something was written").body;
    let version = body["metadata"]["resourceVersion"].as_str();
    version.expect("a write on a version").to_owned()
}

async fn a_lease_that_is_deleted_is_made_anew(cluster: Cluster) {
    let (node, _bob) = held_by_bob(&cluster).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    cluster.delete_lease(&node).await;
    let change = waiting.acquires().await;
    assert_eq!(change.side_effects, [SideEffect::LeaseCreated]);
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["metadata"]["ownerReferences"][0]["name"], node);
}

async fn a_node_that_is_deleted_ends_the_wait(cluster: Cluster) {
    let (node, _bob) = held_by_bob(&cluster).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    cluster.delete(&format!("/api/v1/nodes/{node}")).await;
    match waiting.ends().await {
        Err(Error::NodeNotFound(missing)) => assert_eq!(missing, node),
        other => panic!("{other:?}"),
    }
    assert!(cluster.lease(&node).await.is_null());
}

async fn a_node_that_is_created_anew_is_acquired_anew(cluster: Cluster) {
    let (node, _bob) = held_by_bob(&cluster).await;
    let (other, again) = (cluster.clone(), node.clone());
    let mut looks = 0;
    // The second read of the Node is after the deletion of its Lease.
    let wire = Wire::planned(move |passing| {
        looks += usize::from(passing.what() == "GET node");
        if looks == 2 && passing.what() == "GET node" {
            let (other, again) = (other.clone(), again.clone());
            Fate::Meanwhile(Box::pin(async move {
                other.create_node(&again).await;
            }))
        } else {
            Fate::Pass
        }
    });
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    cluster.delete(&format!("/api/v1/nodes/{node}")).await;
    let change = waiting.acquires().await;
    let lease = cluster.lease(&node).await;
    assert_eq!(
        lease["metadata"]["ownerReferences"][0]["uid"],
        change.row.expect("the Node").uid
    );
    assert_eq!(change.lease.unwrap().transitions(), 1);
}

/// A Lease without an owner stays when its Node is deleted.
async fn a_node_that_was_replaced_during_the_wait_owns_the_lease(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let without_owner = json!({"metadata": {"ownerReferences": null}});
    cluster.patch_lease(&node, without_owner).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    cluster.delete(&format!("{NODES}/{node}")).await;
    let uid = cluster.create_node(&node).await;
    release(&bob, &node).await;
    let change = waiting.acquires().await;
    assert_eq!(change.row.expect("the Node").uid, uid);
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], uid);
}

/// Its Lease would soon be deleted with it.
#[test]
fn a_node_that_is_being_deleted_after_a_long_wait_is_refused() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let (node, bob) = held_by_bob(&cluster).await;
        let path = format!("{NODES}/{node}");
        let finalizers = json!({"metadata": {"finalizers": ["example.com/drain"]}});
        cluster.patch(&path, finalizers).await;
        let alice = cluster.holder("alice");
        let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
        waiting.blocked().await;
        cluster.delete(&path).await;
        tokio::time::sleep(Duration::from_secs(31)).await;
        let released = release(&bob, &node).await.lease.expect("a Lease");
        match waiting.ends().await {
            Err(Error::NodeDeleting(deleting)) => assert_eq!(deleting, node),
            other => panic!("{other:?}"),
        }
        let lease = alice.get(&node).await.unwrap().expect("a Lease");
        assert_eq!(lease.resource_version(), released.resource_version());
    });
}

/// By its own times it has expired, but its holder's clock may be slow.
#[test]
fn a_lock_that_overtook_a_lost_write_lasts_for_the_stated_duration() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let (node, bob) = held_by_bob(&cluster).await;
        let (other, of) = (cluster.clone(), node.clone());
        let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
            let spec = json!({
                "holderIdentity": "carol",
                "leaseDurationSeconds": 2,
                "acquireTime": other.ago(600),
                "renewTime": other.ago(600),
            });
            other.patch_lease(&of, json!({"spec": spec})).await;
            pending::<()>().await;
        })));
        let alice = cluster
            .builder_on(&wire, "alice")
            .request_timeout(Some(TIME_LIMIT))
            .build()
            .unwrap();
        let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
        waiting.blocked().await;
        let released = cluster.now();
        release(&bob, &node).await;
        let change = waiting.acquires().await;
        let before = change.before.expect("a Lease");
        assert_eq!(before.holder(), Some("carol"));
        let waited = change.lease.unwrap().acquired().unwrap() - released;
        let seen_after = chrono::TimeDelta::from_std(TIME_LIMIT).unwrap();
        assert!(
            waited >= seen_after + chrono::TimeDelta::seconds(5),
            "{waited}"
        );
    });
}

/// The watch may show a hold that has ended since, and nothing is written under it.
async fn a_hold_of_ones_own_is_read_again_before_it_is_entered(cluster: Cluster) {
    let (node, _bob) = held_by_bob(&cluster).await;
    let (colleague, carol) = (cluster.holder("alice"), cluster.holder("carol"));
    let (other, another, of) = (colleague.clone(), carol.clone(), node.clone());
    let mut reads = 0;
    let wire = Wire::planned(move |passing| {
        reads += usize::from(passing.what() == "GET lease");
        if reads != 2 || passing.what() != "GET lease" {
            return Fate::Pass;
        }
        let (other, another, of) = (other.clone(), another.clone(), of.clone());
        Fate::Meanwhile(Box::pin(async move {
            other.unhold(&of, None).await.unwrap();
            another.try_acquire(&of, &Acquire::new()).await.unwrap();
        }))
    });
    let alice = cluster.holder_on(&wire, "alice");
    let reentry = Acquire::new().reentry(true);
    let mut waiting = Waiting::to_acquire(&alice, &node, reentry);
    let lease = waiting.blocked().await.refused.lease;
    let fire = Hold::new("fire").take_over(lease);
    colleague.hold(&node, &fire).await.unwrap();
    let lease = waiting.blocked().await.refused.lease;
    assert_eq!(lease.unwrap().holder(), Some("carol"));
    release(&carol, &node).await;
    waiting.acquires().await;
}

async fn a_lock_with_an_unreadable_time_never_expires(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({
        "holderIdentity": "bob",
        "leaseDurationSeconds": 1,
        "renewTime": "9999-12-31T23:59:59.999999Z",
    });
    cluster.write_lease(&node, spec).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let blocked = waiting.blocked().await;
    assert_eq!(blocked.refused.refusal, Refusal::Held);
    assert_eq!(blocked.earliest, None);
    let freed = json!({"spec": {"holderIdentity": "", "renewTime": cluster.ago(0)}});
    cluster.patch_lease(&node, freed).await;
    waiting.acquires().await;
}

async fn one_identity_waits_for_itself(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let mut waiting = Waiting::to_acquire(&bob, &node, Acquire::new());
    let blocked = waiting.blocked().await;
    assert_eq!(blocked.refused.refusal, Refusal::HeldByCaller);
    let colleague = cluster.holder("bob");
    release(&colleague, &node).await;
    assert_eq!(waiting.acquires().await.lease.unwrap().transitions(), 2);
}

async fn a_renewal_is_reported_as_the_same_blocker_with_a_later_end(cluster: Cluster) {
    let node = cluster.node("n").await;
    let bob = cluster.holder("bob");
    let minute = Acquire::new().duration(Duration::from_secs(60));
    bob.try_acquire(&node, &minute).await.unwrap();
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let first = waiting.blocked().await;
    let longer = Renew::new().duration(Duration::from_secs(600));
    bob.renew(&node, &longer).await.unwrap();
    let renewed = waiting.blocked().await;
    assert!(renewed.is_still(&first));
    assert!(renewed.earliest > first.earliest);
    bob.hold(&node, &Hold::new("fire")).await.unwrap();
    let held = waiting.blocked().await;
    assert!(!held.is_still(&renewed));
    bob.unhold(&node, None).await.unwrap();
    waiting.acquires().await;
}

/// By the server's clock, the lock has expired. But its holder may use another clock, even a holder
/// with the same identity.
async fn an_observed_change_gives_the_holder_the_stated_duration(cluster: Cluster) {
    for who in ["alice", "bob"] {
        let node = cluster.node(who).await;
        let bob = cluster.holder("bob");
        bob.try_acquire(&node, &Acquire::new()).await.unwrap();
        let waiter = cluster.holder(who);
        let mut waiting = Waiting::to_acquire(&waiter, &node, Acquire::new());
        waiting.blocked().await;
        let renewed = cluster.now();
        let late = json!({"leaseDurationSeconds": 1, "renewTime": cluster.ago(600)});
        cluster.patch_lease(&node, json!({"spec": late})).await;
        let acquired = waiting.acquires().await.lease.unwrap().acquired().unwrap();
        let waited = acquired - renewed;
        assert!(waited >= chrono::TimeDelta::seconds(4), "{who}: {waited}");
    }
}

async fn dropped_while_it_waits_it_leaves_no_write(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    waiting.task.abort();
    assert!(waiting.task.await.unwrap_err().is_cancelled());
    assert!(!alice.has_open_write(&node));
    let released = release(&bob, &node).await.lease.unwrap();
    let lease = alice.get(&node).await.unwrap().unwrap();
    assert_eq!(lease.resource_version(), released.resource_version());
}

async fn dropped_while_it_writes_it_leaves_a_write_of_unknown_fate(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let (sent, was_sent) = oneshot::channel();
    let wire = Wire::first_write(Fate::swallowed_after(|| {
        sent.send(()).expect("the test waits for it");
    }));
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    release(&bob, &node).await;
    was_sent.await.expect("it writes");
    waiting.task.abort();
    assert!(waiting.task.await.unwrap_err().is_cancelled());
    assert!(alice.has_open_write(&node));
    let found = release(&alice, &node).await;
    assert_eq!(found.done, Done::AlreadyFree);
    assert!(
        alice.has_open_write(&node),
        "an unchanged Lease proves nothing"
    );
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert!(alice.release(&node, &Release::new()).await.is_err());
    assert!(!alice.has_open_write(&node), "its version is past");
}

async fn leases_of_an_election_are_not_waited_for(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({"holderIdentity": "bob", "strategy": "OldestEmulationVersion"});
    cluster.write_elected_lease(&node, spec).await;
    let waiting = Waiting::to_acquire(&cluster.holder("alice"), &node, Acquire::new());
    assert_eq!(refusal(waiting.ends().await).refusal, Refusal::Elected);
}
