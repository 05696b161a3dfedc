//! A lock that is kept: it is renewed during the work, and the loss of one is reported.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use maintenance_lease::{
    Acquire, Done, Error, Guarded, HeldLease, Hold, InvalidOption, Keep, Lost, LostBy, Maintenance,
    Release,
};
use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire};

on_both_servers! {
    it_is_renewed_during_the_work_and_released_after,
    a_renewal_is_one_request,
    locks_too_short_to_keep_are_not_acquired,
    work_that_takes_too_long_to_stop_is_not_kept,
    work_is_dropped_when_the_lease_is_taken_over,
    work_is_dropped_when_the_lease_is_released_by_force,
    work_is_dropped_when_the_lease_is_deleted,
    work_is_dropped_in_time_while_a_renewal_hangs,
    a_renewal_whose_answer_was_lost_keeps_the_lease,
    nothing_is_written_after_a_loss,
    an_existing_lock_is_kept_and_left_unchanged,
    an_own_hold_is_used_and_left_unchanged,
    writes_of_others_on_the_lease_are_no_loss,
}

/// Short, because tests wait for renewals on the real server, but longer than a busy machine stalls.
const SHORT: Duration = Duration::from_secs(12);

async fn keep(maintenance: &Maintenance, node: &str) -> HeldLease {
    let options = Acquire::new().duration(SHORT);
    maintenance.acquire(node, &options).await.unwrap()
}

/// Runs work that never ends, and returns how the lock was lost.
async fn lost(held: &HeldLease) -> Lost {
    match held.guard(pending::<Result<(), ()>>()).await {
        Guarded::Lost(lost) => Lost::clone(&lost),
        other => panic!("{other:?}"),
    }
}

/// Waits until the Lease has been renewed.
async fn renewed(held: &HeldLease) {
    let before = held.held_state();
    let mut now = before.clone();
    while now.deadline <= before.deadline {
        now = held.changed(&now).await;
        assert!(now.lost.is_none(), "{now:?}");
    }
}

async fn it_is_renewed_during_the_work_and_released_after(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let held = keep(&alice, &node).await;
    let work = async {
        renewed(&held).await;
        renewed(&held).await;
        Ok::<_, ()>(17)
    };
    assert!(matches!(held.guard(work).await, Guarded::Completed(17)));
    let lease = cluster.lease(&node).await;
    assert_ne!(lease["spec"]["acquireTime"], lease["spec"]["renewTime"]);
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    let change = held.release().await.unwrap().expect("it was ours");
    assert_eq!(change.done, Done::Released);
    assert_eq!(cluster.lease(&node).await["spec"]["holderIdentity"], "");
}

async fn locks_too_short_to_keep_are_not_acquired(cluster: Cluster) {
    let node = cluster.node("n").await;
    let options = Acquire::new().duration(Duration::from_secs(1));
    let refused = cluster.holder("alice").acquire(&node, &options).await;
    assert!(
        matches!(refused, Err(Error::Invalid(_))),
        "{:?}",
        refused.err()
    );
    assert!(cluster.lease(&node).await.is_null());
}

async fn work_that_takes_too_long_to_stop_is_not_kept(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    for keep in [Keep::new(), Keep::new().missed_renewals(u32::MAX)] {
        let refused = alice.keep(&change, &keep.stop(Duration::MAX)).await.err();
        let shortest = u32::MAX;
        assert!(
            matches!(refused, Some(Error::Invalid(InvalidOption::NoneLongEnough { shortest: it })) if it == shortest),
            "{refused:?}"
        );
    }
}

async fn a_renewal_is_one_request(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let held = keep(&alice, &node).await;
    let before = wire.requests().len();
    renewed(&held).await;
    renewed(&held).await;
    held.release().await.unwrap();
    let requests = wire.passed().split_off(before);
    // A busy server may not answer a write, which is then sent again unchanged.
    let writes = requests.iter().filter(|passing| passing.is_write());
    let repeated = writes.clone().count();
    let writes: BTreeSet<String> = writes.map(|write| write.body.to_string()).collect();
    let repeated = repeated - writes.len();
    assert_eq!(writes.len(), 3, "two renewals and the release: {writes:?}");
    assert!(
        requests.len() <= 4 + 2 * repeated,
        "and the watch: {} requests, {repeated} repeated",
        requests.len()
    );
}

async fn work_is_dropped_when_the_lease_is_taken_over(cluster: Cluster) {
    let node = cluster.node("n").await;
    let held = keep(&cluster.holder("alice"), &node).await;
    let lease = held.held_state().lease;
    let bob = cluster.holder("bob");
    let hold = Hold::new("it is on fire").take_over([lease]);
    let (lost, taken) = tokio::join!(lost(&held), bob.hold(&node, &hold));
    taken.unwrap();
    assert_eq!(lost.by, LostBy::TakeOver("kubeadm:bob".to_owned()));
    assert_eq!(
        lost.lease.expect("it was seen").reason(),
        Some("it is on fire")
    );
}

async fn work_is_dropped_when_the_lease_is_released_by_force(cluster: Cluster) {
    let node = cluster.node("n").await;
    let held = keep(&cluster.holder("alice"), &node).await;
    let lease = held.held_state().lease;
    let bob = cluster.holder("bob");
    let options = Release::new();
    let (lost, released) = tokio::join!(lost(&held), bob.force_release(&lease, &options));
    released.unwrap();
    assert_eq!(lost.by, LostBy::Release);
    assert_eq!(lost.to_string(), format!("node/{node} was released by bob"));
}

async fn work_is_dropped_when_the_lease_is_deleted(cluster: Cluster) {
    let node = cluster.node("n").await;
    let held = keep(&cluster.holder("alice"), &node).await;
    let (lost, ()) = tokio::join!(lost(&held), cluster.delete_lease(&node));
    assert_eq!(lost.by, LostBy::Deletion);
}

async fn work_is_dropped_in_time_while_a_renewal_hangs(cluster: Cluster) {
    let node = cluster.node("n").await;
    let mut writes = 0;
    let wire = Wire::planned(move |passing| {
        writes += usize::from(passing.is_write() && passing.what() == "PATCH lease");
        if writes >= 1 {
            Fate::Swallowed
        } else {
            Fate::Pass
        }
    });
    let alice = cluster.holder_on(&wire, "alice");
    let options = Acquire::new().duration(2 * SHORT);
    let change = alice.try_acquire(&node, &options).await.unwrap();
    // A busy machine may stall at this time.
    let options = Keep::new().stop(SHORT * 2 / 3);
    let held = alice.keep(&change, &options).await.unwrap();
    let deadline = held.held_state().deadline;
    let lost = lost(&held).await;
    assert_eq!(lost.by, LostBy::Expiry);
    assert!(cluster.env.boot() < deadline, "too late");
    assert!(lost.problem.is_some(), "{lost}");
}

async fn a_renewal_whose_answer_was_lost_keeps_the_lease(cluster: Cluster) {
    let node = cluster.node("n").await;
    let mut patches = 0;
    let wire = Wire::planned(move |passing| {
        patches += usize::from(passing.what() == "PATCH lease");
        if patches == 1 {
            patches += 1;
            Fate::answer_lost()
        } else {
            Fate::Pass
        }
    });
    let alice = cluster.holder_on(&wire, "alice");
    let held = keep(&alice, &node).await;
    renewed(&held).await;
    renewed(&held).await;
    held.release().await.unwrap().expect("it was ours");
}

async fn nothing_is_written_after_a_loss(cluster: Cluster) {
    let node = cluster.node("n").await;
    let held = keep(&cluster.holder("alice"), &node).await;
    let lease = held.held_state().lease;
    let bob = cluster.holder("bob");
    bob.force_release(&lease, &Release::new()).await.unwrap();
    lost(&held).await;
    let before = cluster.lease(&node).await;
    let error = held.release().await.unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error}");
    assert_eq!(cluster.lease(&node).await, before);
}

async fn an_existing_lock_is_kept_and_left_unchanged(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let first = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let options = Acquire::new().duration(SHORT).reentry(true);
    let held = alice.acquire(&node, &options).await.unwrap();
    assert!(held.was_found());
    assert_eq!(
        held.fencing(),
        None,
        "its number was reported to the caller"
    );
    assert_eq!(held.lock_id(), first.lock_id());
    assert!(held.release().await.unwrap().is_none());
    let lease = alice.get(&node).await.unwrap().expect("a Lease");
    assert_eq!(lease.lock_id(), first.lock_id());
}

async fn an_own_hold_is_used_and_left_unchanged(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    alice.hold(&node, &Hold::new("disk")).await.unwrap();
    let before = cluster.lease(&node).await;
    let options = Acquire::new().reentry(true);
    let change = alice.try_acquire(&node, &options).await.unwrap();
    let held = alice
        .keep(&change, &Keep::new().duration(SHORT))
        .await
        .unwrap();
    let work = async {
        cluster.touch_lease(&node).await;
        Ok::<_, ()>(())
    };
    assert!(matches!(held.guard(work).await, Guarded::Completed(())));
    assert!(held.release().await.unwrap().is_none());
    let after = cluster.lease(&node).await;
    assert_eq!(after["spec"], before["spec"]);
}

async fn writes_of_others_on_the_lease_are_no_loss(cluster: Cluster) {
    let node = cluster.node("n").await;
    let held = keep(&cluster.holder("alice"), &node).await;
    let patch = json!({"metadata": {"labels": {"team": "storage"}}});
    cluster.patch_lease(&node, patch).await;
    renewed(&held).await;
    cluster.touch_lease(&node).await;
    renewed(&held).await;
    held.release().await.unwrap().expect("it was ours");
    assert_eq!(
        cluster.lease(&node).await["metadata"]["labels"]["team"],
        "storage"
    );
}
