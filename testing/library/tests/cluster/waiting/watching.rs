//! A waiter whose watch sends nothing, is cut off, is too old, or is forbidden.

use std::time::Duration;

use futures::future::pending;
use http::StatusCode;
use maintenance_lease::protocol::{Instant, State};
use maintenance_lease::{Acquire, Maintenance, Renew};
use tokio::sync::oneshot;

use super::{Told, Waiting, about_to_expire, held_by_bob, release};
use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, in_the_sandbox, noon_and, on_kubernetes};

on_both_servers! {
    the_timer_alone_takes_over_what_expired,
    a_renewal_that_a_silent_watch_kept_back_is_found_by_the_lost_race,
    a_watch_that_was_cut_continues_at_its_version,
    a_watch_that_is_too_old_begins_anew,
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
    // The timer fires, the write gets a conflict, and one read shows why.
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

async fn a_watch_that_was_cut_continues_at_its_version(cluster: Cluster) {
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

/// Waits as `alice` for the lock of bob, and then releases it. Watches are forbidden.
async fn without_a_watch(node: &str, alice: &Maintenance, bob: &Maintenance) {
    let mut waiting = Waiting::to_acquire(alice, node, Acquire::new());
    waiting.blocked().await;
    match waiting.next().await {
        Told::Unwatched(why) => assert!(why.contains("Forbidden"), "{why}"),
        told => panic!("{told:?}"),
    }
    release(bob, node).await;
    waiting.acquires().await;
}

#[test]
fn without_the_right_to_watch_it_reads_repeatedly() {
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
        // Three requests at first. Then, about every 10 s, a read, and a watch in case the right
        // has been granted.
        let requests = wire.requests().len();
        assert!((7 * 2..=11 * 3).contains(&requests), "{requests}");
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
        assert!(matches!(waiting.next().await, Told::Unwatched(_)));
        release(&bob, &node).await;
        let change = waiting.task.await.unwrap().unwrap();
        assert!(waiting.told.recv().await.is_none(), "told once");
        assert!(change.lease.unwrap().acquired().unwrap() >= back);
        // No more than two requests per second, for two minutes.
        assert!(wire.requests().len() < 240, "{}", wire.requests().len());
    });
}
