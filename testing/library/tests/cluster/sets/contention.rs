//! Other callers that hold some of the locks.

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, Hold, SetError};

use super::{
    Locking, at_once, before_the_write_to, for_seconds, holder, nodes, release, take, written,
};
use crate::on_both_servers;
use crate::support::Cluster;

on_both_servers! {
    a_rival_midway_ends_it_and_costs_few_requests,
    nothing_is_held_while_it_waits,
    overlapping_sets_that_wait_get_all_in_turn,
}

async fn a_rival_midway_ends_it_and_costs_few_requests(cluster: Cluster) {
    const NODES: usize = 100;
    let names: Vec<String> = (0..NODES).map(|number| format!("n{number:03}")).collect();
    let mut nodes = Vec::new();
    for name in &names {
        let [node] = super::nodes(&cluster, [name]).await;
        nodes.push(node);
    }
    let contended = nodes[NODES / 2].clone();
    let (bob, rival) = (cluster.holder("bob"), contended.clone());
    let wire = before_the_write_to(
        &contended,
        Box::pin(async move { take(&bob, &rival).await }),
    );
    let alice = cluster.holder_on(&wire, "alice");
    let outcome = at_once(&alice, &nodes, &for_seconds(60)).await;
    assert!(outcome.held.is_empty());
    match &outcome.failed[&contended] {
        SetError::Lock(Error::Refused(refused)) => assert_eq!(refused.refusal, Refusal::Held),
        other => panic!("{other:?}"),
    }
    // For each node: the two reads before, a write and a release. The others are repeated reads of the refused node, or
    // reads after a slow answer.
    let requests = wire.requests().len();
    assert!(requests <= 2 * NODES + 2 * NODES + NODES, "{requests}");
    for node in &nodes {
        let expected = if *node == contended { "bob" } else { "" };
        assert_eq!(holder(&cluster, node).await, expected, "{node}");
    }
}

/// It meets the lock of another in the middle of a try, as a lease or on hold.
async fn nothing_is_held_while_it_waits(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    let both = [a.clone(), b.clone()];
    for holds in [false, true] {
        let (bob, rival) = (cluster.holder("bob"), b.clone());
        let wire = before_the_write_to(
            &b,
            Box::pin(async move {
                match holds {
                    true => drop(bob.hold(&rival, &Hold::new("disk")).await.unwrap()),
                    false => take(&bob, &rival).await,
                }
            }),
        );
        let alice = cluster.holder_on(&wire, "alice");
        let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
        let refusal = if holds {
            Refusal::AdminHold
        } else {
            Refusal::Held
        };
        assert_eq!(locking.blocked().await, (0, b.clone(), refusal));
        assert_eq!(holder(&cluster, &a).await, "");
        assert_eq!(written(&wire), [a.clone(), b.clone(), a.clone()]);
        let bob = cluster.holder("bob");
        match holds {
            true => drop(bob.unhold(&b, None).await.unwrap()),
            false => release(&bob, &b).await,
        }
        locking.locks_all(&both).await;
        release(&alice, &a).await;
        release(&alice, &b).await;
    }
}

async fn overlapping_sets_that_wait_get_all_in_turn(cluster: Cluster) {
    let all = nodes(&cluster, ["a", "b", "c"]).await;
    let reversed: Vec<String> = all.iter().rev().cloned().collect();
    for _ in 0..5 {
        let rounds = [("alice", &all[..]), ("bob", &reversed)].map(async |(who, nodes)| {
            let who = cluster.holder(who);
            let options = for_seconds(60).wait(None);
            Locking::begin(&who, nodes, options).locks_all(&all).await;
            for node in &all {
                release(&who, node).await;
            }
        });
        futures::future::join_all(rounds).await;
    }
    for node in &all {
        assert_eq!(holder(&cluster, node).await, "");
    }
}
