//! The server's clock decides, not the caller's.

use std::time::Duration;

use chrono::TimeDelta;
use maintenance_lease::protocol::{Refusal, Span};
use maintenance_lease::{Acquire, ClockWarning, Maintenance, Release};
use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, PausedMachine, refusal};

on_both_servers! {
    a_clock_that_is_ahead_takes_nothing_too_soon,
    a_clock_that_is_behind_writes_the_servers_time,
    a_clock_that_is_right_is_left_alone,
}

const HOUR: i64 = 3600;

/// A holder whose clock is ahead by this many seconds, and who has already had an answer from the
/// server.
async fn with_clock(cluster: &Cluster, ahead_seconds: i64) -> Maintenance {
    let ahead = Span::micros(ahead_seconds * 1_000_000);
    let clock = PausedMachine::new(cluster.env.clone(), ahead);
    let holder = cluster.builder("alice").env(clock);
    let holder = holder.build().unwrap();
    holder.get(&cluster.name("n")).await.unwrap();
    holder
}

/// By how many hours the local clock is ahead, according to the warning.
fn warned_of(holder: &Maintenance) -> i64 {
    let Some(ClockWarning::LocalClock { ahead }) = holder.server_time().warning() else {
        panic!("no warning of the local clock");
    };
    let hour = Span::seconds(3600).as_micros();
    (ahead.as_micros() + hour / 2).div_euclid(hour)
}

async fn a_clock_that_is_ahead_takes_nothing_too_soon(cluster: Cluster) {
    let node = cluster.node("n").await;
    let options = Acquire::new().duration(Duration::from_secs(1800));
    let bob = cluster.holder("bob");
    bob.try_acquire(&node, &options).await.unwrap();
    let alice = with_clock(&cluster, HOUR).await;
    let refused = refusal(alice.try_acquire(&node, &options).await);
    assert_eq!(refused.refusal, Refusal::Held);
    assert_eq!(warned_of(&alice), 1);
}

async fn a_clock_that_is_behind_writes_the_servers_time(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({
        "holderIdentity": "bob",
        "renewTime": cluster.ago(HOUR / 2),
        "leaseDurationSeconds": 60,
    });
    cluster.write_lease(&node, spec).await;
    let alice = with_clock(&cluster, -HOUR).await;
    let before = cluster.now();
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let acquired = change.lease.unwrap().acquired().unwrap();
    assert!((acquired - before).abs() < TimeDelta::minutes(10));
    assert_eq!(warned_of(&alice), -1);
    // The lock is valid for holders whose clocks are right.
    let bob = cluster.holder("bob");
    let refused = refusal(bob.try_acquire(&node, &Acquire::new()).await);
    assert_eq!(refused.refusal, Refusal::Held);
    alice.release(&node, &Release::new()).await.unwrap();
}

async fn a_clock_that_is_right_is_left_alone(cluster: Cluster) {
    let alice = with_clock(&cluster, 0).await;
    assert_eq!(alice.server_time().warning(), None);
    let (before, now) = (cluster.env.wall(), alice.server_time().now());
    assert_eq!(now.earliest, now.latest);
    assert!(now.earliest >= before - Span::seconds(1));
}
