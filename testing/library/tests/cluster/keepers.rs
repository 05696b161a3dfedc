//! Many locks that one program keeps.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use http::StatusCode;
use maintenance_lease::{Acquire, Change, HeldLease, Hold, Keep, LostBy, Maintenance};

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Passing, Wire, in_the_sandbox};

on_both_servers! {
    many_locks_share_a_watch,
    an_earlier_acquisition_also_shares_the_watch,
    only_the_keeper_of_a_lock_notices_its_changes,
    a_shared_watch_that_became_too_old_begins_anew,
}

const LENGTH: Duration = Duration::from_secs(60);

/// Up to this number, each lock has its own watch.
const ALONE: usize = 8;

async fn keep(cluster: &Cluster, maintenance: &Maintenance, count: usize) -> Vec<HeldLease> {
    let acquire = Acquire::new().duration(LENGTH);
    let nodes =
        join_all((0..count).map(async |number| cluster.node(&format!("n{number}")).await)).await;
    let held = nodes.iter().map(|node| maintenance.acquire(node, &acquire));
    try_join_all(held).await.unwrap()
}

async fn acquire(cluster: &Cluster, maintenance: &Maintenance, number: usize) -> Change {
    let node = cluster.node(&format!("n{number}")).await;
    let acquire = Acquire::new().duration(LENGTH);
    maintenance.try_acquire(&node, &acquire).await.unwrap()
}

fn is_watch(passing: &Passing) -> bool {
    passing.query.contains("watch=true")
}

fn watches_all(passing: &Passing) -> bool {
    is_watch(passing) && !passing.query.contains("fieldSelector")
}

/// An administrator takes over the lock, and its keeper reports the loss.
async fn assert_loss_is_noticed(cluster: &Cluster, held: &HeldLease) {
    let bob = cluster.holder("bob");
    let lease = held.held_state().lease;
    let hold = Hold::new("it is on fire").take_over([lease]);
    bob.hold(held.node(), &hold).await.unwrap();
    let lost = held.expiry().await;
    assert_eq!(lost.by, LostBy::TakeOver("kubeadm:bob".to_owned()));
}

async fn many_locks_share_a_watch(cluster: Cluster) {
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let mut held = Vec::new();
    for number in 0..3 * ALONE {
        let change = acquire(&cluster, &alice, number).await;
        held.push(alice.keep(&change, &Keep::new()).await.unwrap());
    }
    for held in &held {
        assert_loss_is_noticed(&cluster, held).await;
    }
    let passed = wire.passed();
    let watches = passed.iter().filter(|passing| is_watch(passing));
    assert_eq!(watches.count(), ALONE + 1);
    let shared = passed.iter().filter(|passing| watches_all(passing));
    assert_eq!(shared.count(), 1);
}

/// If locks are acquired in parallel, an earlier acquisition may be answered later.
async fn an_earlier_acquisition_also_shares_the_watch(cluster: Cluster) {
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let first = acquire(&cluster, &alice, 0).await;
    // A watch that starts at the version of any later acquisition does not report this change.
    let hold = Hold::new("it is on fire").take_over(first.lease.clone());
    let bob = cluster.holder("bob");
    bob.hold(&first.node, &hold).await.unwrap();
    let mut changes = vec![first];
    for number in 1..3 * ALONE {
        changes.push(acquire(&cluster, &alice, number).await);
    }
    let mut held = Vec::new();
    for change in changes.iter().rev() {
        held.push(alice.keep(change, &Keep::new()).await.unwrap());
    }
    let (first, others) = held.split_last().expect("some are held");
    let lost = first.expiry().await;
    assert_eq!(lost.by, LostBy::TakeOver("kubeadm:bob".to_owned()));
    for held in others {
        assert_loss_is_noticed(&cluster, held).await;
    }
    let passed = wire.passed();
    let alone = passed
        .iter()
        .filter(|passing| is_watch(passing) && !watches_all(passing));
    assert_eq!(alone.count(), ALONE);
}

async fn only_the_keeper_of_a_lock_notices_its_changes(cluster: Cluster) {
    let held = keep(&cluster, &cluster.holder("alice"), 3 * ALONE).await;
    let [first, .., last] = &held[..] else {
        panic!("some are held")
    };
    for (held, by) in [(first, "first"), (last, "last")] {
        cluster.delete_lease(held.node()).await;
        assert_eq!(held.expiry().await.by, LostBy::Deletion, "{by}");
    }
    for held in held {
        let node = held.node().to_owned();
        let lost = held.held_state().lost.is_some();
        assert_eq!(lost, held.release().await.is_err(), "{node}");
        assert_eq!(lost, cluster.lease(&node).await.is_null(), "{node}");
    }
}

async fn a_shared_watch_that_became_too_old_begins_anew(cluster: Cluster) {
    let mut refused = false;
    let wire = Wire::planned(move |passing| {
        if watches_all(passing) && !std::mem::replace(&mut refused, true) {
            Fate::Refused(StatusCode::GONE, None)
        } else {
            Fate::Pass
        }
    });
    let held = keep(&cluster, &cluster.holder_on(&wire, "alice"), 3 * ALONE).await;
    // The list may already show the first of these two losses, but only a watch shows the second.
    for held in &held[2 * ALONE..][..2] {
        assert_loss_is_noticed(&cluster, held).await;
    }
    // On a busy machine, a renewal may notice the loss before the watch does.
    let shared = || {
        wire.passed()
            .iter()
            .filter(|passing| watches_all(passing))
            .count()
    };
    for _ in 0..200 {
        if shared() == 2 {
            break;
        }
        cluster.env.sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(shared(), 2);
    let lost = held.iter().filter(|held| held.held_state().lost.is_some());
    assert_eq!(lost.count(), 2);
}

/// Each renewal sends only a patch, and every patch succeeds.
#[test]
fn of_a_thousand_none_is_lost_and_each_renewal_is_one_request() {
    const KEPT: usize = 1000;
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let wire = Wire::clear();
        let held = keep(&cluster, &cluster.holder_on(&wire, "alice"), KEPT).await;
        let before = wire.passed().len();
        // Each lock is renewed three times or more: every third of the duration, minus the jitter
        // between holders.
        cluster.env.sleep(LENGTH).await;
        let lost = held.iter().filter(|held| held.held_state().lost.is_some());
        assert_eq!(lost.count(), 0);
        let mut renewals = BTreeSet::new();
        let passed = wire.passed().split_off(before);
        for passing in passed.iter().filter(|passing| !is_watch(passing)) {
            assert_eq!(passing.what(), "PATCH lease");
            let renewed = passing.body["spec"]["renewTime"].to_string();
            assert!(renewals.insert((&passing.path, renewed)), "sent twice");
        }
        assert!(renewals.len() >= 3 * KEPT, "{} renewals", renewals.len());
        assert!(renewals.len() <= 4 * KEPT, "{} renewals", renewals.len());
        // If a renewal had failed, the next patch would have a wrong resource version, and the
        // release would fail.
        let released = join_all(held.into_iter().map(HeldLease::release)).await;
        assert!(released.iter().all(Result::is_ok));
    });
}
