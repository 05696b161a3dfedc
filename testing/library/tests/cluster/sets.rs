//! Several locks together.

mod contention;
mod ending;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{
    Acquire, Done, Ending, Error, Hold, Maintenance, Progress, Release, SetError, SetOptions,
    SetOutcome, SetProgress,
};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Passing, TIME_LIMIT, Wire};

on_both_servers! {
    all_are_locked_by_one_write_each,
    waiting_locks_nodes_in_name_order,
    locks_that_others_hold_are_refused_before_any_write,
    expired_locks_come_after_the_free_ones,
    partial_keeps_those_that_succeed,
    earlier_locks_of_the_caller_are_left_as_found,
    what_was_taken_over_stays_on_hold,
    a_node_that_does_not_exist_is_not_waited_for,
    a_dry_run_waits_for_nobody,
}

/// A progress report of a set.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) held: usize,
    /// The node that the set waits for, and why.
    pub(super) blocked: Option<(String, Refusal)>,
}

/// A set in progress.
pub(super) struct Locking {
    task: JoinHandle<SetOutcome>,
    told: UnboundedReceiver<Told>,
    interrupt: Option<oneshot::Sender<()>>,
}

impl Locking {
    pub(super) fn begin(who: &Maintenance, nodes: &[String], options: SetOptions) -> Self {
        let (sender, told) = unbounded_channel();
        let (interrupt, interrupted) = oneshot::channel::<()>();
        let (who, nodes) = (who.clone(), nodes.to_vec());
        let task = tokio::spawn(async move {
            let tell = |progress: SetProgress<'_>| {
                let blocked = match progress.waiting {
                    Some(Progress::Blocked(blocked)) => {
                        let refused = &blocked.refused;
                        Some((refused.node.clone(), refused.refusal))
                    }
                    _ => None,
                };
                let held = progress.held;
                // The test may have ended.
                let _ = sender.send(Told { held, blocked });
            };
            let interrupt = async {
                if interrupted.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            who.lock_all(nodes, &options, interrupt, tell).await
        });
        Self {
            task,
            told,
            interrupt: Some(interrupt),
        }
    }

    /// The next report of a refused node, with the number of locks that the set holds.
    pub(super) async fn blocked(&mut self) -> (usize, String, Refusal) {
        loop {
            let told = self.told.recv().await.expect("it waits");
            if let Some((node, refusal)) = told.blocked {
                return (told.held, node, refusal);
            }
        }
    }

    pub(super) fn interrupt(&mut self) {
        let interrupt = self.interrupt.take().expect("it comes once");
        interrupt.send(()).expect("it is at work");
    }

    /// Drops the future of the set.
    pub(super) async fn abandon(self) {
        self.task.abort();
        assert!(self.task.await.is_err(), "it was at work");
    }

    pub(super) async fn ends(self) -> SetOutcome {
        self.task.await.expect("it does not panic")
    }

    /// Expects that the set ends with all locks.
    pub(super) async fn locks_all(self, nodes: &[String]) {
        let outcome = self.ends().await;
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        let held: Vec<&String> = outcome.held.keys().collect();
        assert_eq!(held, nodes.iter().collect::<Vec<_>>());
    }
}

pub(super) async fn nodes<const N: usize>(cluster: &Cluster, names: [&str; N]) -> [String; N] {
    let nodes = names.map(|name| cluster.name(name));
    for node in &nodes {
        cluster.create_node(node).await;
        cluster.write_lease(node, json!({})).await;
    }
    nodes
}

/// The holder of the node, or an empty string.
pub(super) async fn holder(cluster: &Cluster, node: &str) -> String {
    let lease = cluster.lease(node).await;
    lease["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

pub(super) fn for_seconds(seconds: u64) -> SetOptions {
    SetOptions::acquire(Acquire::new().duration(Duration::from_secs(seconds)))
}

pub(super) async fn take(who: &Maintenance, node: &str) {
    who.try_acquire(node, &Acquire::new()).await.unwrap();
}

pub(super) async fn release(who: &Maintenance, node: &str) {
    who.release(node, &Release::new()).await.unwrap();
}

/// A wire on which `something` happens before the first write to `node`.
pub(super) fn before_the_write_to(node: &str, something: BoxFuture<'static, ()>) -> Wire {
    let (end, mut something) = (format!("/{node}"), Some(something));
    Wire::planned(move |passing| {
        let is_it = passing.is_write() && passing.path.ends_with(&end);
        match something.take_if(|_| is_it) {
            Some(something) => Fate::Meanwhile(something),
            None => Fate::Pass,
        }
    })
}

/// The nodes of the writes to Leases, in order.
pub(super) fn written(wire: &Wire) -> Vec<String> {
    let writes = wire.passed().into_iter().filter(Passing::is_write);
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    writes.map(|write| name(&write.path)).collect()
}

async fn seen(who: &Maintenance, nodes: &[String]) -> Vec<maintenance_lease::Target> {
    let mut targets = Vec::new();
    for node in nodes {
        targets.push(maintenance_lease::Target {
            node: node.clone(),
            seen: Some(who.read(node, true).await.unwrap()),
        });
    }
    targets
}

async fn at_once(who: &Maintenance, nodes: &[String], options: &SetOptions) -> SetOutcome {
    let targets = seen(who, nodes).await;
    who.lock_all(targets, options, std::future::pending(), |_| ())
        .await
}

async fn all_are_locked_by_one_write_each(cluster: Cluster) {
    let nodes = nodes(&cluster, ["a", "b", "c"]).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let outcome = at_once(&alice, &nodes, &for_seconds(60)).await;
    assert!(outcome.failed.is_empty() && !outcome.interrupted);
    let mut written = written(&wire);
    written.sort();
    assert_eq!(written, nodes);
    for (node, change) in &outcome.held {
        assert_eq!((&change.node, change.done), (node, Done::Acquired));
        assert_eq!(holder(&cluster, node).await, "alice");
    }
}

async fn waiting_locks_nodes_in_name_order(cluster: Cluster) {
    let [a, b, c] = nodes(&cluster, ["a", "b", "c"]).await;
    let bob = cluster.holder("bob");
    take(&bob, &b).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let given = [c.clone(), b.clone(), a.clone()];
    let mut locking = Locking::begin(&alice, &given, for_seconds(60).wait(None));
    assert_eq!(locking.blocked().await, (0, b.clone(), Refusal::Held));
    assert_eq!(written(&wire), [""; 0]);
    release(&bob, &b).await;
    locking.locks_all(&[a.clone(), b.clone(), c.clone()]).await;
    let written = written(&wire);
    assert_eq!(written[..3], [a.clone(), b.clone(), c.clone()]);
    // Each lock is checked at the end.
    let checks: BTreeMap<&String, ()> = written[3..].iter().map(|node| (node, ())).collect();
    assert_eq!(checks.into_keys().collect::<Vec<_>>(), [&a, &b, &c]);
}

async fn locks_that_others_hold_are_refused_before_any_write(cluster: Cluster) {
    let nodes = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &nodes[1]).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    for outcome in [
        at_once(&alice, &nodes, &for_seconds(60)).await,
        // Here the library looks by itself.
        Locking::begin(&alice, &nodes, for_seconds(60)).ends().await,
    ] {
        assert!(outcome.held.is_empty());
        assert_eq!(outcome.failed.keys().collect::<Vec<_>>(), [&nodes[1]]);
        assert_eq!(written(&wire), [""; 0]);
    }
}

/// A set that fails leaves the traces of unfinished work, or says what it has replaced.
async fn expired_locks_come_after_the_free_ones(cluster: Cluster) {
    let [a, b, c] = nodes(&cluster, ["a", "b", "c"]).await;
    let bob = cluster.holder("bob");
    for node in [&a, &c] {
        let second = Acquire::new().duration(Duration::from_secs(1));
        bob.try_acquire(node, &second).await.unwrap();
    }
    cluster.env.sleep(Duration::from_secs(5)).await;
    let all = [a.clone(), b.clone(), c.clone()];
    let rival = |node: &String| {
        let (carol, node) = (cluster.holder("carol"), node.clone());
        let taken = node.clone();
        before_the_write_to(&node, Box::pin(async move { take(&carol, &taken).await }))
    };

    let wire = rival(&b);
    let alice = cluster.holder_on(&wire, "alice");
    let outcome = at_once(&alice, &all, &for_seconds(60)).await;
    assert!(
        outcome.held.is_empty() && outcome.replaced.is_empty(),
        "{outcome:?}"
    );
    assert_eq!(holder(&cluster, &a).await, "bob");
    release(&cluster.holder("carol"), &b).await;

    let wire = rival(&c);
    let alice = cluster.holder_on(&wire, "alice");
    let options = for_seconds(60).wait(Some(TIME_LIMIT));
    let outcome = Locking::begin(&alice, &all, options).ends().await;
    assert!(outcome.held.is_empty(), "{outcome:?}");
    assert_eq!(outcome.replaced.keys().collect::<Vec<_>>(), [&a]);
    assert_eq!(
        outcome.replaced[&a].before.as_ref().unwrap().holder(),
        Some("bob")
    );
    let lease = alice.get(&a).await.unwrap().unwrap();
    let ends: Vec<Ending> = lease
        .history()
        .unwrap()
        .iter()
        .map(|past| past.end)
        .collect();
    assert_eq!(
        (lease.holder(), &ends[..]),
        (None, &[Ending::Expired, Ending::Released][..])
    );
}

async fn partial_keeps_those_that_succeed(cluster: Cluster) {
    let [a, b, c] = nodes(&cluster, ["a", "b", "c"]).await;
    take(&cluster.holder("bob"), &b).await;
    let alice = cluster.holder("alice");
    let nodes = [a.clone(), b.clone(), c.clone()];
    let outcome = Locking::begin(&alice, &nodes, for_seconds(60).partial());
    let outcome = outcome.ends().await;
    assert_eq!(outcome.held.keys().collect::<Vec<_>>(), [&a, &c]);
    match &outcome.failed[&b] {
        SetError::Lock(Error::Refused(refused)) => assert_eq!(refused.refusal, Refusal::Held),
        other => panic!("{other:?}"),
    }
    assert_eq!(holder(&cluster, &c).await, "alice");
}

async fn earlier_locks_of_the_caller_are_left_as_found(cluster: Cluster) {
    let [a, b, c] = nodes(&cluster, ["a", "b", "c"]).await;
    let alice = cluster.holder("alice");
    let disk = Acquire::new().reason("disk");
    let found = alice.try_acquire(&b, &disk).await.unwrap();
    alice.hold(&a, &Hold::new("disk")).await.unwrap();
    let all = [a.clone(), b.clone(), c.clone()];
    let reentry = SetOptions::acquire(Acquire::new().reason("new").reentry(true));
    let limit = Some(TIME_LIMIT);
    for options in [
        reentry.clone(),
        reentry.wait(limit),
        SetOptions::hold(Hold::new("new")).wait(limit),
    ] {
        let (bob, node) = (cluster.holder("bob"), c.clone());
        let wire = before_the_write_to(&c, Box::pin(async move { take(&bob, &node).await }));
        let alice = cluster.holder_on(&wire, "alice");
        let outcome = Locking::begin(&alice, &all, options).ends().await;
        assert!(outcome.held.is_empty(), "{:?}", outcome.held);
        assert_eq!(outcome.failed.keys().collect::<Vec<_>>(), [&c]);
        for (node, holder) in [(&a, "kubeadm:alice"), (&b, "alice")] {
            let lease = alice.get(node).await.unwrap().unwrap();
            assert_eq!(
                (lease.holder(), lease.reason()),
                (Some(holder), Some("disk"))
            );
        }
        let lease = alice.get(&b).await.unwrap().unwrap();
        assert_eq!(lease.lock_id(), found.lock_id());
        release(&cluster.holder("bob"), &c).await;
    }
    let hold = SetOptions::hold(Hold::new("new")).wait(limit);
    Locking::begin(&alice, &all, hold).locks_all(&all).await;
    for node in &all {
        let lease = alice.get(node).await.unwrap().unwrap();
        assert_eq!(
            (lease.holder(), lease.reason()),
            (Some("kubeadm:alice"), Some("new"))
        );
    }
}

/// The earlier holder may still be working on the node.
async fn what_was_taken_over_stays_on_hold(cluster: Cluster) {
    let [a, b, c] = nodes(&cluster, ["a", "b", "c"]).await;
    let (bob, carol) = (cluster.holder("bob"), cluster.holder("carol"));
    take(&bob, &a).await;
    take(&carol, &c).await;
    let confirmed = [bob.get(&a).await.unwrap(), carol.get(&c).await.unwrap()];
    let newer = c.clone();
    let wire = before_the_write_to(
        &c,
        Box::pin(async move {
            release(&carol, &newer).await;
            take(&carol, &newer).await;
        }),
    );
    let alice = cluster.holder_on(&wire, "alice");
    let options = SetOptions::hold(Hold::new("rack").take_over(confirmed.into_iter().flatten()));
    let all = [a.clone(), b.clone(), c.clone()];
    let outcome = Locking::begin(&alice, &all, options).ends().await;
    assert_eq!(outcome.failed.keys().collect::<Vec<_>>(), [&c]);
    assert_eq!(outcome.held.keys().collect::<Vec<_>>(), [&a]);
    assert_eq!(holder(&cluster, &a).await, "kubeadm:alice");
    assert_eq!(holder(&cluster, &b).await, "");
}

async fn a_node_that_does_not_exist_is_not_waited_for(cluster: Cluster) {
    let [a] = nodes(&cluster, ["a"]).await;
    take(&cluster.holder("bob"), &a).await;
    let missing = cluster.name("missing");
    let alice = cluster.holder("alice");
    let options = for_seconds(60).wait(None);
    let outcome = at_once(&alice, &[a, missing.clone()], &options).await;
    match &outcome.failed[&missing] {
        SetError::Lock(Error::NodeNotFound(node)) => assert_eq!(*node, missing),
        other => panic!("{other:?}"),
    }
}

async fn a_dry_run_waits_for_nobody(cluster: Cluster) {
    let nodes = nodes(&cluster, ["a", "b"]).await;
    let bob = cluster.holder("bob");
    bob.hold(&nodes[1], &Hold::new("disk")).await.unwrap();
    let dry_run = cluster
        .builder("alice")
        .dry_run(maintenance_lease::DryRun::Server);
    let alice = dry_run.build().unwrap();
    let outcome = Locking::begin(&alice, &nodes, for_seconds(60).wait(None))
        .ends()
        .await;
    assert!(matches!(
        &outcome.failed[&nodes[1]],
        SetError::Lock(Error::Refused(_))
    ));
    assert_eq!(holder(&cluster, &nodes[0]).await, "");
}
