//! Waiting for a lock: one watch, one timer, and one write a chance.

use std::time::Duration;

use futures::future::{join_all, pending};
use http::StatusCode;
use maintenance_lease::protocol::{Instant, Refusal, State};
use maintenance_lease::{
    Acquire, Aside, Blocked, Change, Done, Error, Hold, Maintenance, Progress, Release, Renew,
};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, in_the_sandbox, noon_and, on_kubernetes, refusal};

on_both_servers! {
    what_nobody_holds_is_acquired_at_once,
    a_release_hands_over_by_one_write_on_the_version_that_the_watch_brought,
    the_timer_alone_takes_over_what_expired,
    a_renewal_that_a_silent_watch_kept_back_is_found_by_the_lost_race,
    a_watch_that_was_cut_goes_on_where_it_was,
    a_watch_that_is_too_old_begins_anew,
    losers_of_a_race_write_once_and_wait_on,
    a_lease_that_is_deleted_is_made_anew,
    a_node_that_is_deleted_ends_the_wait,
    a_node_that_is_created_anew_is_acquired_anew,
    a_hold_ends_by_its_end_alone,
    a_time_that_cannot_be_read_is_waited_out_by_nobody,
    what_must_be_free_is_not_taken_when_it_expires,
    one_identity_waits_for_itself,
    a_renewal_is_told_as_the_same_obstacle_with_a_later_end,
    what_changed_before_its_eyes_is_the_holders_for_as_long_as_it_says,
    a_hold_waits_for_a_lease,
    ones_own_lease_is_made_a_hold_at_once,
    a_lost_race_for_ones_own_lease_is_no_storm,
    dropped_while_it_waits_it_leaves_no_write,
    dropped_while_it_writes_it_leaves_a_write_of_unknown_fate,
}

on_both_servers! {
    alone: what_an_election_owns_is_not_waited_for,
}

/// What a waiter told.
#[derive(Debug)]
enum Told {
    Blocked(Box<Blocked>),
    Blind(String),
}

/// A waiter at work.
struct Waiting {
    task: JoinHandle<Result<Change, Error>>,
    told: UnboundedReceiver<Told>,
}

impl Waiting {
    /// Lets `who` wait for `node`, to acquire it.
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

    /// What it tells next.
    async fn next(&mut self) -> Told {
        self.told.recv().await.expect("it waits")
    }

    /// What it says next of what stands in its way.
    async fn blocked(&mut self) -> Blocked {
        match self.next().await {
            Told::Blocked(blocked) => *blocked,
            Told::Blind(why) => panic!("it can't watch: {why}"),
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
        Progress::Blind(why) => Told::Blind(why.to_string()),
        other => panic!("{other:?}"),
    };
    // A test that is over listens no more.
    let _ = told.send(progress);
}

/// A node that bob holds, and bob.
async fn held_by_bob(cluster: &Cluster) -> (String, Maintenance) {
    let node = cluster.node("n").await;
    let bob = cluster.holder("bob");
    let disk = Acquire::new().reason("disk");
    bob.try_acquire(&node, &disk).await.unwrap();
    (node, bob)
}

/// A node whose holder went away, and which is anybody's in about a second.
async fn about_to_expire(cluster: &Cluster, node: &str) {
    let spec = json!({
        "holderIdentity": "bob",
        "leaseDurationSeconds": 1,
        "acquireTime": cluster.ago(3),
        "renewTime": cluster.ago(3),
        "leaseTransitions": 1,
    });
    cluster.write_lease(node, spec).await;
}

async fn release(holder: &Maintenance, node: &str) -> Change {
    holder.release(node, &Release::new()).await.unwrap()
}

async fn what_nobody_holds_is_acquired_at_once(cluster: Cluster) {
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
    let write = wire.passed().pop().unwrap();
    assert_eq!(
        write.body["metadata"]["resourceVersion"],
        released.resource_version().to_string()
    );
}

async fn the_timer_alone_takes_over_what_expired(cluster: Cluster) {
    let node = cluster.node("n").await;
    about_to_expire(&cluster, &node).await;
    let wire = Wire::every_watch(|_| Fate::Silent(Box::pin(pending())));
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let earliest = waiting.blocked().await.earliest.expect("it ends");
    let change = waiting.acquires().await;
    assert!(matches!(change.state_before, State::Expired { .. }));
    assert!(Instant::from(change.lease.unwrap().acquired().unwrap()) >= earliest);
    assert_eq!(wire.requests().split_off(2), ["WATCH lease", "PATCH lease"]);
}

async fn a_renewal_that_a_silent_watch_kept_back_is_found_by_the_lost_race(cluster: Cluster) {
    let node = cluster.node("n").await;
    about_to_expire(&cluster, &node).await;
    let wire = Wire::every_watch(|number| match number {
        0 => Fate::Silent(Box::pin(pending())),
        _ => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let expiring = waiting.blocked().await;
    let bob = cluster.holder("bob");
    let renew = Renew::new().duration(Duration::from_secs(600));
    bob.renew(&node, &renew).await.unwrap();
    // The timer fires, its write meets another version, and one look tells why.
    let renewed = waiting.blocked().await;
    assert!(renewed.is_still(&expiring));
    assert!(renewed.earliest > expiring.earliest);
    release(&bob, &node).await;
    waiting.acquires().await;
    let mut requests = wire.requests().split_off(2);
    requests[2..4].sort();
    assert_eq!(
        requests,
        [
            "WATCH lease",
            "PATCH lease",
            "GET lease",
            "GET node",
            "WATCH lease",
            "PATCH lease"
        ]
    );
}

async fn a_watch_that_was_cut_goes_on_where_it_was(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let (cut, cutting) = oneshot::channel::<()>();
    let mut cutting = Some(cutting);
    let wire = Wire::every_watch(move |_| match cutting.take() {
        Some(cutting) => Fate::Silent(Box::pin(async {
            let _ = cutting.await;
        })),
        None => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    release(&bob, &node).await;
    cut.send(()).expect("the watch was opened");
    waiting.acquires().await;
    assert_eq!(
        wire.requests().split_off(2),
        ["WATCH lease", "WATCH lease", "PATCH lease"]
    );
}

async fn a_watch_that_is_too_old_begins_anew(cluster: Cluster) {
    let (node, bob) = held_by_bob(&cluster).await;
    let wire = Wire::every_watch(|number| match number {
        0 => Fate::Refused(StatusCode::GONE, None),
        _ => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    release(&bob, &node).await;
    waiting.acquires().await;
    let requests = wire.requests().split_off(2);
    assert_eq!(requests[..2], ["WATCH lease", "GET lease"]);
    assert_eq!(wire.passed().last().unwrap().writes, 1);
}

/// Hands a node over from waiter to waiter, and returns how many requests and how many writes they
/// and the holder sent for each.
async fn hand_over(cluster: &Cluster, waiters: usize, rounds: usize) -> Vec<(usize, usize)> {
    let (node, _) = held_by_bob(cluster).await;
    let wire = Wire::clear();
    let mut waiting = Vec::new();
    for number in 0..waiters {
        let waiter = cluster.holder_on(&wire, &format!("waiter-{number}"));
        let mut one = Waiting::to_acquire(&waiter, &node, Acquire::new());
        one.blocked().await;
        waiting.push((waiter, one));
    }
    let mut holder = cluster.holder_on(&wire, "bob");
    let mut counts = Vec::new();
    for _ in 0..rounds {
        let before = wire.passed();
        release(&holder, &node).await;
        let ends = waiting.iter_mut().map(|(_, one)| Box::pin(&mut one.task));
        let (change, winner, _) = futures::future::select_all(ends).await;
        let change = change.unwrap().unwrap();
        let (won, _) = waiting.swap_remove(winner);
        assert_eq!(change.lease.unwrap().holder(), Some(won.identity()));
        // All others have seen who was first.
        join_all(waiting.iter_mut().map(async |(_, one)| {
            let refused = one.blocked().await.refused;
            assert_eq!(refused.lease.unwrap().holder(), Some(won.identity()));
        }))
        .await;
        holder = won;
        let passed = wire.passed().split_off(before.len());
        // The watches of those that wait are open already, or are opened now for the first time.
        let passed = passed.iter().filter(|passing| !passing.is_watch());
        let writes = passed.clone().filter(|passing| passing.is_write()).count();
        counts.push((passed.count(), writes));
    }
    for (_, one) in waiting {
        one.task.abort();
    }
    counts
}

async fn losers_of_a_race_write_once_and_wait_on(cluster: Cluster) {
    for (round, (_, writes)) in hand_over(&cluster, 20, 3).await.into_iter().enumerate() {
        // With the release.
        assert!(writes <= 20 - round + 1, "{writes} writes in round {round}");
    }
}

/// How many requests that takes is exact only where no waiter is kept waiting by a busy machine.
#[test]
fn a_hand_over_among_200_takes_a_request_each_and_no_read() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        for (round, (requests, _)) in hand_over(&cluster, 200, 3).await.into_iter().enumerate() {
            // The release is a read and a write.
            let limit = 200 - round + 2;
            assert!(requests <= limit, "{requests} requests in round {round}");
        }
    });
}

async fn a_lease_that_is_deleted_is_made_anew(cluster: Cluster) {
    let (node, _bob) = held_by_bob(&cluster).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    waiting.blocked().await;
    cluster.delete_lease(&node).await;
    let change = waiting.acquires().await;
    assert_eq!(change.asides, [Aside::LeaseCreated]);
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
    // The second look at the Node is after its Lease went.
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

/// A hold that somebody made by hand, with times that are long over.
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

async fn a_hold_ends_by_its_end_alone(cluster: Cluster) {
    let node = old_hold(&cluster).await;
    let alice = cluster.holder("alice");
    let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
    let blocked = waiting.blocked().await;
    assert_eq!(blocked.refused.refusal, Refusal::AdminHold);
    assert_eq!(blocked.earliest, None);
    cluster.holder("bob").unhold(&node).await.unwrap();
    waiting.acquires().await;
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

async fn a_time_that_cannot_be_read_is_waited_out_by_nobody(cluster: Cluster) {
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

async fn what_must_be_free_is_not_taken_when_it_expires(cluster: Cluster) {
    let node = cluster.node("n").await;
    about_to_expire(&cluster, &node).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let strict = Acquire::new().free_only(true);
    let mut waiting = Waiting::to_acquire(&alice, &node, strict);
    assert_eq!(waiting.blocked().await.earliest, None);
    let anybody = cluster.holder("carol");
    let carol = Waiting::to_acquire(&anybody, &node, Acquire::new());
    carol.acquires().await;
    let blocked = waiting.blocked().await;
    assert_eq!(blocked.refused.lease.unwrap().holder(), Some("carol"));
    assert_eq!(wire.passed().last().unwrap().writes, 0);
    release(&anybody, &node).await;
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

async fn a_renewal_is_told_as_the_same_obstacle_with_a_later_end(cluster: Cluster) {
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
    bob.unhold(&node).await.unwrap();
    waiting.acquires().await;
}

/// By the server's clock it is over, but its holder may go by another: also one of the same name.
async fn what_changed_before_its_eyes_is_the_holders_for_as_long_as_it_says(cluster: Cluster) {
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

/// What is the caller's own may be taken at any time; but not again and again on what it was.
async fn a_lost_race_for_ones_own_lease_is_no_storm(cluster: Cluster) {
    let (node, _bob) = held_by_bob(&cluster).await;
    let (other, touched) = (cluster.clone(), node.clone());
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        other.touch_lease(&touched).await;
    })));
    let bob = cluster.holder_on(&wire, "bob");
    let again = Acquire::new().reentry(true);
    let change = Waiting::to_acquire(&bob, &node, again).ends().await;
    assert_eq!(change.unwrap().done, Done::Renewed);
    assert_eq!(wire.passed().last().unwrap().writes, 2);
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
}

async fn what_an_election_owns_is_not_waited_for(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({"holderIdentity": "bob", "strategy": "OldestEmulationVersion"});
    cluster.write_elected_lease(&node, spec).await;
    let waiting = Waiting::to_acquire(&cluster.holder("alice"), &node, Acquire::new());
    assert_eq!(refusal(waiting.ends().await).refusal, Refusal::Elected);
}

/// Waits over `alice` for what bob holds, and hands over. Nothing may be watched.
async fn without_a_watch(node: &str, alice: &Maintenance, bob: &Maintenance) {
    let mut waiting = Waiting::to_acquire(alice, node, Acquire::new());
    waiting.blocked().await;
    match waiting.next().await {
        Told::Blind(why) => assert!(why.contains("Forbidden"), "{why}"),
        told => panic!("{told:?}"),
    }
    release(bob, node).await;
    waiting.acquires().await;
}

#[test]
fn who_may_not_watch_reads_every_now_and_then() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let (node, bob) = held_by_bob(&cluster).await;
        let rights = [
            control_plane::Rule::new(
                "coordination.k8s.io",
                &["leases"],
                &["get", "create", "patch"],
            ),
            control_plane::Rule::new("", &["nodes"], &["get"]),
        ];
        let user = cluster.user("reader", &rights).await;
        without_a_watch(&node, &user, &bob).await;
    });
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let (node, bob) = held_by_bob(&cluster).await;
        let wire = Wire::every_watch(|_| Fate::Refused(StatusCode::FORBIDDEN, None));
        let alice = cluster.holder_on(&wire, "alice");
        let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
        waiting.blocked().await;
        tokio::time::sleep(Duration::from_secs(101)).await;
        // Every 10 s two reads, and a watch in case the right was granted.
        assert_eq!(wire.requests().len(), 11 * 3);
        release(&bob, &node).await;
        waiting.acquires().await;
    });
}

#[test]
fn while_the_server_is_away_it_tries_again_and_says_so_once() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let (node, bob) = held_by_bob(&cluster).await;
        let back = noon_and(120);
        let env = cluster.env.clone();
        let mut requests = 0;
        let wire = Wire::planned(move |_| {
            requests += 1;
            match env.wall() < back.into() && requests > 2 {
                true => Fate::Reset,
                false => Fate::Pass,
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let mut waiting = Waiting::to_acquire(&alice, &node, Acquire::new());
        waiting.blocked().await;
        assert!(matches!(waiting.next().await, Told::Blind(_)));
        release(&bob, &node).await;
        let change = waiting.task.await.unwrap().unwrap();
        assert!(waiting.told.recv().await.is_none(), "told once");
        assert!(change.lease.unwrap().acquired().unwrap() >= back);
        // No more than two a second, in two minutes.
        assert!(wire.requests().len() < 240, "{}", wire.requests().len());
    });
}
