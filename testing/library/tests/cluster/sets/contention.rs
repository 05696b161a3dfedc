//! Other callers that hold some of the locks.

use std::time::Duration;

use futures::future::join;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Error, Hold, SetError};

use super::{
    Locking, at_once, before_the_write_to, for_seconds, holder, nodes, release, take, written,
};
use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, in_the_sandbox};

on_both_servers! {
    a_rival_midway_ends_it_and_costs_few_requests,
    a_hold_ends_a_set_that_does_not_wait_at_once,
    no_locks_are_held_while_waiting_for_a_hold,
    a_lease_that_becomes_a_hold_makes_it_give_way,
    of_overlapping_sets_one_gets_all,
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

async fn a_hold_ends_a_set_that_does_not_wait_at_once(cluster: Cluster) {
    let nodes = nodes(&cluster, ["a", "b", "c"]).await;
    let (bob, rival) = (cluster.holder("bob"), nodes[1].clone());
    let holding = async move {
        bob.hold(&rival, &Hold::new("disk")).await.unwrap();
    };
    let wire = before_the_write_to(&nodes[1], Box::pin(holding));
    let alice = cluster.holder_on(&wire, "alice");
    let outcome = at_once(&alice, &nodes, &for_seconds(60)).await;
    assert_eq!(outcome.failed.keys().collect::<Vec<_>>(), [&nodes[1]]);
    assert!(!wire.requests().contains(&"WATCH lease".to_owned()));
    assert_eq!(holder(&cluster, &nodes[0]).await, "");
    assert_eq!(holder(&cluster, &nodes[2]).await, "");
}

async fn no_locks_are_held_while_waiting_for_a_hold(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    let alice = cluster.holder("alice");
    let both = [a.clone(), b.clone()];
    for (name, refusal) in [("bob", Refusal::AdminHold), ("alice", Refusal::OwnHold)] {
        let administrator = cluster.holder(name);
        administrator.hold(&b, &Hold::new("disk")).await.unwrap();
        let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
        assert_eq!(locking.blocked().await, (0, b.clone(), refusal));
        assert_eq!(holder(&cluster, &a).await, "");
        let carol = cluster.holder("carol");
        take(&carol, &a).await;
        release(&carol, &a).await;
        administrator.unhold(&b).await.unwrap();
        locking.locks_all(&both).await;
        assert_eq!(holder(&cluster, &b).await, "alice");
        release(&alice, &a).await;
        release(&alice, &b).await;
    }
}

async fn a_lease_that_becomes_a_hold_makes_it_give_way(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    let bob = cluster.holder("bob");
    take(&bob, &b).await;
    let alice = cluster.holder("alice");
    let both = [a.clone(), b.clone()];
    let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
    assert_eq!(locking.blocked().await, (1, b.clone(), Refusal::Held));
    bob.hold(&b, &Hold::new("disk")).await.unwrap();
    assert_eq!(locking.blocked().await, (0, b.clone(), Refusal::AdminHold));
    assert_eq!(holder(&cluster, &a).await, "");
    bob.unhold(&b).await.unwrap();
    locking.locks_all(&both).await;
}

/// Each set lacks locks of the other, in every possible order.
async fn of_overlapping_sets_one_gets_all(cluster: Cluster) {
    let [a, b, c, d] = nodes(&cluster, ["a", "b", "c", "d"]).await;
    let all = [a.clone(), b.clone(), c.clone(), d.clone()];
    let others = [vec![b, c.clone(), d.clone()], vec![c, d], all.to_vec()];
    for (round, other) in others.iter().cycle().take(9).enumerate() {
        let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
        let (mine, theirs) = join(
            Locking::begin(&alice, &all, for_seconds(60)).ends(),
            Locking::begin(&bob, other, for_seconds(60)).ends(),
        )
        .await;
        let (winner, nodes, loser) = match mine.failed.is_empty() {
            true => ("alice", &all[..], theirs),
            false => {
                assert!(
                    theirs.failed.is_empty(),
                    "round {round}: {mine:?} {theirs:?}"
                );
                ("bob", &other[..], mine)
            }
        };
        assert!(loser.held.is_empty(), "round {round}: {loser:?}");
        for node in &all {
            let expected = if nodes.contains(node) { winner } else { "" };
            assert_eq!(
                holder(&cluster, node).await,
                expected,
                "round {round}: {node}, {loser:?}"
            );
        }
        for node in nodes {
            release(&cluster.holder(winner), node).await;
        }
    }
}

#[test]
fn after_a_conflict_a_slow_server_has_time_to_release() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        let (bob, rival) = (cluster.holder("bob"), b.clone());
        let mut taking = Some(Box::pin(async move { take(&bob, &rival).await }));
        let ends = [&a, &b].map(|node| format!("/{node}"));
        let wire = Wire::planned(move |passing| {
            let is_of = |end: &String| passing.is_write() && passing.path.ends_with(end);
            if passing.body["spec"]["holderIdentity"] == "" && is_of(&ends[0]) {
                Fate::Meanwhile(Box::pin(tokio::time::sleep(Duration::from_secs(4))))
            } else if let Some(taking) = taking.take_if(|_| is_of(&ends[1])) {
                Fate::Meanwhile(taking)
            } else {
                Fate::Pass
            }
        });
        let both = [a.clone(), b.clone()];
        let alice = cluster.holder_on(&wire, "alice");
        let outcome = at_once(&alice, &both, &for_seconds(60)).await;
        let failed = &outcome.failed[&b];
        assert!(
            matches!(failed, SetError::Lock(Error::Refused(_))),
            "{failed:?}"
        );
        assert!(!outcome.failed.contains_key(&a), "{outcome:?}");
        assert_eq!(holder(&cluster, &a).await, "");
    });
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
        // Every acquisition was part of a complete set.
        assert_eq!(cluster.lease(node).await["spec"]["leaseTransitions"], 10);
    }
}

#[test]
fn after_one_duration_others_get_their_chance() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        let bob = cluster.holder("bob");
        take(&bob, &b).await;
        let alice = cluster.holder("alice");
        let both = [a.clone(), b.clone()];
        let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
        assert_eq!(locking.blocked().await.0, 1);
        // The lock is renewed for this duration.
        tokio::time::sleep(Duration::from_secs(55)).await;
        let lease = cluster.lease(&a).await;
        assert_eq!(lease["spec"]["holderIdentity"], "alice");
        assert_ne!(lease["spec"]["acquireTime"], lease["spec"]["renewTime"]);
        assert_eq!(locking.blocked().await, (0, b.clone(), Refusal::Held));
        assert_eq!(holder(&cluster, &a).await, "");
        release(&bob, &b).await;
        locking.locks_all(&both).await;
    });
}

#[test]
fn locks_do_not_expire_during_a_wait() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let both = nodes(&cluster, ["a", "b"]).await;
        let bob = cluster.holder("bob");
        take(&bob, &both[1]).await;
        let wire = Wire::clear();
        let alice = cluster.holder_on(&wire, "alice");
        let mut locking = Locking::begin(&alice, &both, for_seconds(30).wait(None));
        locking.blocked().await;
        tokio::time::sleep(Duration::from_secs(29)).await;
        release(&bob, &both[1]).await;
        locking.locks_all(&both).await;
        let writes = written(&wire);
        let of_a = writes.iter().filter(|node| **node == both[0]).count();
        assert!(of_a >= 4, "acquired, renewed twice, checked: {writes:?}");
        assert_eq!(cluster.lease(&both[0]).await["spec"]["leaseTransitions"], 1);
    });
}
