//! Many waiters for one lock: one acquires it, and most others send nothing.

use futures::future::{join_all, select_all};
use maintenance_lease::{Acquire, Change, Done, Maintenance};

use super::{Waiting, held_by_bob, release};
use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, in_the_sandbox};

on_both_servers! {
    losers_of_a_race_write_once_and_wait_on,
    a_lost_race_for_ones_own_lease_is_not_repeated_conflicts,
}

async fn losers_of_a_race_write_once_and_wait_on(cluster: Cluster) {
    for (round, (_, writes)) in hand_over(&cluster, 20, 3).await.into_iter().enumerate() {
        // The number includes the release.
        assert!(writes <= 20 - round + 1, "{writes} writes in round {round}");
    }
}

/// Hands a node over from waiter to waiter. Returns the number of requests and of writes in each round, including those
/// of the holder.
async fn hand_over(cluster: &Cluster, waiters: usize, rounds: usize) -> Vec<(usize, usize)> {
    let (node, _) = held_by_bob(cluster).await;
    let wire = Wire::clear();
    let mut waiting = Vec::new();
    for number in 0..waiters {
        let waiter = cluster.holder_on(&wire, &format!("waiter-{number}"));
        waiting.push(waits(waiter, &node).await);
    }
    let mut holder = cluster.holder_on(&wire, "bob");
    let mut counts = Vec::new();
    for _ in 0..rounds {
        let before = wire.passed();
        release(&holder, &node).await;
        let (winner, change) = winner(&mut waiting).await;
        let (won, _) = waiting.swap_remove(winner);
        assert_eq!(change.lease.unwrap().holder(), Some(won.identity()));
        // All other waiters have seen the winner.
        join_all(waiting.iter_mut().map(async |(_, one)| {
            let refused = one.blocked().await.refused;
            assert_eq!(refused.lease.unwrap().holder(), Some(won.identity()));
        }))
        .await;
        holder = won;
        let passed = wire.passed().split_off(before.len());
        // The watches of the waiters are already open, or are opened now for the first time.
        let passed = passed.iter().filter(|passing| !passing.is_watch());
        let writes = passed.clone().filter(|passing| passing.is_write()).count();
        counts.push((passed.count(), writes));
    }
    for (_, one) in waiting {
        one.task.abort();
    }
    counts
}

#[test]
fn most_of_200_waiters_send_nothing_when_somebody_else_is_quicker() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let counts = hand_over(&cluster, 200, 25).await;
        let (first, rest) = counts.split_first().unwrap();
        // Before the first race, no waiter knows of another one. The release is a read and a write.
        assert!(first.0 <= 202, "{counts:?}");
        // Each race that a waiter loses widens the range of its random delay.
        let mut late: Vec<usize> = rest[rest.len() - 11..]
            .iter()
            .map(|count| count.0)
            .collect();
        late.sort_unstable();
        assert!(late[5] <= 60, "{counts:?}");
    });
}

/// A new waiter tries at once, and a waiter that lost a race has a random delay. The new ones must not starve the
/// others.
#[test]
fn a_waiter_that_lost_races_gets_its_turn_although_new_ones_come() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let (node, mut holder) = held_by_bob(&cluster).await;
        let mut waiting = Vec::new();
        for name in ["alice", "carol"] {
            waiting.push(waits(cluster.holder(name), &node).await);
        }
        let mut in_a_row = 0;
        for hand_over in 0..400 {
            release(&holder, &node).await;
            let (winner, _) = winner(&mut waiting).await;
            // The second waiter is the newest one.
            in_a_row = if winner == 1 { in_a_row + 1 } else { 0 };
            assert!(in_a_row < 60, "{in_a_row} new ones came first");
            (holder, _) = waiting.swap_remove(winner);
            waiting[0].1.blocked().await;
            let new = cluster.holder(&format!("new-{hand_over}"));
            waiting.push(waits(new, &node).await);
        }
        for (_, one) in waiting {
            one.task.abort();
        }
    });
}

/// The position of the waiter that acquires the lock, and its acquisition.
async fn winner(waiting: &mut [(Maintenance, Waiting)]) -> (usize, Change) {
    let ends = waiting.iter_mut().map(|(_, one)| Box::pin(&mut one.task));
    let (change, winner, _) = select_all(ends).await;
    (winner, change.unwrap().unwrap())
}

async fn waits(who: Maintenance, node: &str) -> (Maintenance, Waiting) {
    let mut one = Waiting::to_acquire(&who, node, Acquire::new());
    one.blocked().await;
    (who, one)
}

/// The caller's own lease can be acquired at any time, but not repeatedly on the same old version.
async fn a_lost_race_for_ones_own_lease_is_not_repeated_conflicts(cluster: Cluster) {
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
