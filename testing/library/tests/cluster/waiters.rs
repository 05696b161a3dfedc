//! Many waiters for one lock: the requests for each hand-over.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use maintenance_lease::{Acquire, Error, HeldLease, Keep, Maintenance};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::on_both_servers;
use crate::support::{Cluster, Passing, Wire, in_the_sandbox};

on_both_servers! {
    each_waiter_tries_once_when_the_lock_is_released,
    each_waiter_tries_once_when_the_lease_expires,
}

const CROWD: usize = 50;

async fn each_waiter_tries_once_when_the_lock_is_released(cluster: Cluster) {
    let crowd = Crowd::gather(&cluster, Duration::from_secs(1800)).await;
    crowd.first.release().await.unwrap().expect("it was held");
    try_join_all(crowd.turns).await.unwrap();
    assert_each_tried_once_a_hand_over(&crowd.wire.passed());
}

async fn each_waiter_tries_once_when_the_lease_expires(cluster: Cluster) {
    let crowd = Crowd::gather(&cluster, Duration::from_secs(10)).await;
    crowd.first.leave();
    try_join_all(crowd.turns).await.unwrap();
    assert_each_tried_once_a_hand_over(&crowd.wire.passed());
}

/// In virtual time, no answer is late, so no waiter reads again.
#[test]
fn many_waiters_only_watch() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let crowd = Crowd::gather(&cluster, Duration::from_secs(1800)).await;
        crowd.first.release().await.unwrap().expect("it was held");
        try_join_all(crowd.turns).await.unwrap();
        let passed = crowd.wire.passed();
        let (watches, reads): (Vec<_>, Vec<_>) = passed
            .iter()
            .filter(|passing| !passing.is_write())
            .partition(|read| read.query.contains("watch=true"));
        assert_eq!(reads.len(), 2 * CROWD, "a Lease and a Node each");
        assert_eq!(watches.len(), CROWD);
    });
}

/// A holder, and many waiters for the same lock on one wire. Each one releases the lock as soon as
/// it has acquired it.
struct Crowd {
    first: HeldLease,
    wire: Wire,
    turns: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// `length` is the duration of the first holder's lease.
    async fn gather(cluster: &Cluster, length: Duration) -> Self {
        let node = cluster.node("n").await;
        let acquire = Acquire::new().duration(length);
        let first = cluster.holder("first");
        let change = first.try_acquire(&node, &acquire).await.unwrap();
        let first = first
            .keep(&change, &Keep::new().stop(Duration::from_millis(100)))
            .await
            .unwrap();
        let wire = Wire::clear();
        let (tell, mut told) = mpsc::unbounded_channel();
        let turns = (0..CROWD).map(|number| {
            let waiter = cluster.holder_on(&wire, &format!("waiter-{number}"));
            let (node, tell) = (node.clone(), tell.clone());
            tokio::spawn(async move {
                turn(&waiter, &node, || tell.send(number).unwrap())
                    .await
                    .unwrap();
            })
        });
        let turns = turns.collect();
        let mut waiting = std::collections::BTreeSet::new();
        while waiting.len() < CROWD {
            waiting.insert(told.recv().await.expect("somebody waits"));
        }
        // The waiters send reports until they end.
        tokio::spawn(async move { while told.recv().await.is_some() {} });
        Self { first, wire, turns }
    }
}

async fn turn(
    waiter: &Maintenance,
    node: &str,
    mut waits: impl FnMut() + Send,
) -> Result<(), Error> {
    let acquire = Acquire::new();
    let change = waiter
        .acquire_when_free(node, &acquire, |_| waits())
        .await?;
    let held = waiter.keep(&change, &Keep::new()).await?;
    held.release().await?.expect("it was acquired");
    Ok(())
}

/// Each time the lock becomes free, its Lease has a new version. All remaining waiters send one
/// patch on that version. Those who have had the lock send none.
fn assert_each_tried_once_a_hand_over(passed: &[Passing]) {
    let mut tries = BTreeMap::<String, usize>::new();
    let mut releases = 0;
    for write in passed.iter().filter(|passing| passing.is_write()) {
        assert_eq!(write.what(), "PATCH lease");
        if write.body["spec"]["holderIdentity"] == "" {
            releases += 1;
        } else {
            let version = write.body["metadata"]["resourceVersion"].to_string();
            *tries.entry(version).or_default() += 1;
        }
    }
    assert_eq!(releases, CROWD);
    assert_eq!(tries.len(), CROWD, "{tries:?}");
    let mut tries: Vec<usize> = tries.into_values().collect();
    tries.sort_unstable();
    for (at_most, tries) in std::iter::zip(1.., tries) {
        assert!(tries <= at_most, "{tries} tries by {at_most} who waited");
    }
}
