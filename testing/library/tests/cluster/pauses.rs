//! A machine that was paused: no decision is made, and no work begins or continues, on data that
//! the pause made doubtful.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join;
use maintenance_lease::protocol::Span;
use maintenance_lease::{
    Acquire, Error, Guarded, Hold, Keep, LostBy, Maintenance, Release, SetError, SetOptions, Target,
};

use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, NODES, PausedMachine, Wire};

on_both_servers! {
    a_contender_with_a_wrong_clock_takes_nothing_after_a_pause,
    a_waiter_writes_nothing_before_a_read_after_the_pause_is_answered,
    a_set_that_waits_reads_again_what_was_read_before_a_pause,
    work_that_ends_after_its_lock_on_a_suspended_machine_is_lost,
    a_lock_that_was_acquired_across_a_pause_is_read_before_it_is_believed,
    a_lock_that_was_lost_during_a_pause_is_not_kept,
    locks_from_before_a_pause_are_checked_before_work_begins,
    a_hold_is_checked_at_once,
    a_check_goes_over_a_new_connection,
}

const PAUSE: Duration = Duration::from_secs(5);

/// alice, on a machine that can be paused and whose clock is one hour ahead.
fn alice(cluster: &Cluster, wire: &Wire) -> (Maintenance, Arc<PausedMachine>) {
    let machine = PausedMachine::new(cluster.env.clone(), Span::seconds(3_600));
    let alice = cluster.builder_on(wire, "alice").env(machine.clone());
    (alice.build().unwrap(), machine)
}

async fn holder(cluster: &Cluster, node: &str) -> Option<String> {
    let lease = cluster.holder("reader").get(node).await.unwrap();
    lease.and_then(|lease| lease.holder().map(ToOwned::to_owned))
}

async fn a_contender_with_a_wrong_clock_takes_nothing_after_a_pause(cluster: Cluster) {
    let (first, second) = (cluster.node("a").await, cluster.node("b").await);
    let half_an_hour = Acquire::new().duration(Duration::from_secs(1_800));
    let bob = cluster.holder("bob");
    bob.try_acquire(&second, &half_an_hour).await.unwrap();
    let wire = Wire::clear();
    let (alice, machine) = alice(&cluster, &wire);
    let minute = Acquire::new().duration(Duration::from_secs(60));
    let held = alice.acquire(&first, &minute).await.unwrap();
    let waiting = alice.acquire_when_free(&second, &minute, |_| ());
    let pausing = async {
        cluster.env.sleep(Duration::from_millis(500)).await;
        machine.pause(PAUSE);
        cluster.env.sleep(Duration::from_secs(3)).await;
        held.checked().await.unwrap();
    };
    tokio::select! {
        taken = waiting => panic!("it is bob's: {taken:?}"),
        () = pausing => {}
    }
    assert_eq!(holder(&cluster, &second).await.as_deref(), Some("bob"));
    held.release().await.unwrap();
}

async fn a_waiter_writes_nothing_before_a_read_after_the_pause_is_answered(cluster: Cluster) {
    let node = cluster.node("n").await;
    let path = format!("{NODES}/{node}");
    let finalizers = json!({"metadata": {"finalizers": ["example.com/drain"]}});
    cluster.patch(&path, finalizers).await;
    let bob = cluster.holder("bob");
    bob.try_acquire(&node, &Acquire::new()).await.unwrap();
    let mut reads = 0;
    let wire = Wire::planned(move |passing| {
        reads += usize::from(passing.what() == "GET node");
        match passing.what() == "GET node" && reads == 2 {
            true => Fate::Reset,
            false => Fate::Pass,
        }
    });
    let (alice, machine) = alice(&cluster, &wire);
    let options = Acquire::new();
    let acquiring = alice.acquire_when_free(&node, &options, |_| ());
    let pausing = async {
        while !wire.requests().contains(&"WATCH lease".to_owned()) {
            cluster.env.sleep(Duration::from_millis(50)).await;
        }
        cluster.delete(&path).await;
        machine.pause(PAUSE);
        bob.release(&node, &Release::new()).await.unwrap();
    };
    let (acquired, ()) = join(acquiring, pausing).await;
    assert!(
        matches!(&acquired, Err(Error::NodeDeleting(deleting)) if *deleting == node),
        "{acquired:?}"
    );
    cluster
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

/// The second Node is marked for deletion while the first one is being locked.
async fn a_set_that_waits_reads_again_what_was_read_before_a_pause(cluster: Cluster) {
    let (first, second) = (cluster.node("a").await, cluster.node("b").await);
    let path = format!("{NODES}/{second}");
    let finalizers = json!({"metadata": {"finalizers": ["example.com/drain"]}});
    cluster.patch(&path, finalizers).await;
    let paused: Arc<Mutex<Option<Arc<PausedMachine>>>> = Arc::default();
    let (other, deleted, machine) = (cluster.clone(), path.clone(), paused.clone());
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        other.delete(&deleted).await;
        let machine = machine.lock().unwrap().take().expect("it is known by now");
        machine.pause(PAUSE);
    })));
    let (alice, machine) = alice(&cluster, &wire);
    *paused.lock().unwrap() = Some(machine);
    let mut targets = Vec::new();
    for node in [&first, &second] {
        let mut target = Target::from(node.as_str());
        target.seen = Some(alice.read(node, true).await.unwrap());
        targets.push(target);
    }
    let options = SetOptions::acquire(Acquire::new()).wait(None);
    let outcome = alice.lock_all(targets, &options, pending(), |_| ()).await;
    let failed = outcome.failed.get(&second);
    assert!(
        matches!(failed, Some(SetError::Lock(Error::NodeDeleting(_)))),
        "{outcome:?}"
    );
    assert!(outcome.held.is_empty(), "{outcome:?}");
    cluster
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

/// The work goes on before any timer has fired.
async fn work_that_ends_after_its_lock_on_a_suspended_machine_is_lost(cluster: Cluster) {
    let node = cluster.node("n").await;
    let (alice, machine) = alice(&cluster, &Wire::clear());
    let options = Acquire::new().duration(Duration::from_secs(12));
    let held = alice.acquire(&node, &options).await.unwrap();
    let work = async {
        // The keeper waits for its next renewal by now.
        cluster.env.sleep(Duration::from_millis(50)).await;
        machine.suspend(Duration::from_secs(60));
        tokio::task::yield_now().await;
        Ok::<(), ()>(())
    };
    match held.guard(work).await {
        Guarded::Lost(lost) => assert_eq!(lost.by, LostBy::Expiry),
        other => panic!("{other:?}"),
    }
}

async fn a_lock_that_was_acquired_across_a_pause_is_read_before_it_is_believed(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let paused: Arc<Mutex<Option<Arc<PausedMachine>>>> = Arc::default();
    let machine = paused.clone();
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        let machine = machine.lock().unwrap().take().expect("it is known by now");
        machine.pause(Duration::from_secs(30));
    })));
    let (alice, machine) = alice(&cluster, &wire);
    *paused.lock().unwrap() = Some(machine);
    let minute = Acquire::new().duration(Duration::from_secs(60));
    let before = cluster.env.boot();
    let change = alice.try_acquire(&node, &minute).await.unwrap();
    let last = wire.requests().pop();
    assert_eq!(last.as_deref(), Some("GET lease"), "{:?}", wire.requests());
    assert!(change.deadline.unwrap() >= before.plus(Span::seconds(20)));
    let held = alice.keep(&change, &Keep::new()).await.unwrap();
    held.release().await.unwrap();
}

async fn locks_from_before_a_pause_are_checked_before_work_begins(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    let (alice, machine) = alice(&cluster, &wire);
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    machine.pause(PAUSE);
    let sent = wire.requests().len();
    let held = alice.keep(&change, &Keep::new()).await.unwrap();
    let since = wire.requests().split_off(sent);
    assert!(since.contains(&"GET lease".to_owned()), "{since:?}");
    assert!(!held.held_state().checking);
    held.release().await.unwrap();
}

async fn a_lock_that_was_lost_during_a_pause_is_not_kept(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    let (alice, machine) = alice(&cluster, &wire);
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    machine.pause(PAUSE);
    let bob = cluster.holder("bob");
    let lease = change.lease.clone().unwrap();
    bob.force_release(&lease, &Release::new()).await.unwrap();
    match alice.keep(&change, &Keep::new()).await {
        Err(Error::Lost(lost)) => assert_eq!(lost.by, LostBy::Release),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was released"),
    }
}

async fn a_hold_is_checked_at_once(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::clear();
    let (alice, machine) = alice(&cluster, &wire);
    let change = alice.hold(&node, &Hold::new("a disk")).await.unwrap();
    let held = alice.keep(&change, &Keep::new()).await.unwrap();
    cluster.env.sleep(Duration::from_millis(500)).await;
    machine.pause(PAUSE);
    let sent = wire.requests().len();
    let since = || wire.requests().split_off(sent);
    for _ in 0..600 {
        if since().contains(&"GET lease".to_owned()) {
            break;
        }
        cluster.env.sleep(Duration::from_millis(50)).await;
    }
    assert!(since().contains(&"GET lease".to_owned()), "{:?}", since());
    held.checked().await.unwrap();
    held.release().await.unwrap();
}

async fn a_check_goes_over_a_new_connection(cluster: Cluster) {
    let node = cluster.node("n").await;
    let machine = PausedMachine::new(cluster.env.clone(), Span::ZERO);
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = opened.clone();
    let alice = cluster
        .builder("alice")
        .env(machine.clone())
        .reconnect(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 0);
    machine.pause(PAUSE);
    let held = alice.keep(&change, &Keep::new()).await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    held.release().await.unwrap();
}
