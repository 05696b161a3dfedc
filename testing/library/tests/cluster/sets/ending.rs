//! Sets that end early: time limits, interrupts, lost locks, and dropped futures.

use std::future::pending;
use std::time::Duration;

use http::StatusCode;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Acquire, ApiError, Error, Hold, LostBy, Release, SetError, SetOptions};
use serde_json::json;
use tokio::sync::oneshot;

use super::{
    Locking, at_once, before_the_write_to, for_seconds, holder, nodes, release, take, written,
};
use crate::on_both_servers;
use crate::support::{Cluster, Fate, TIME_LIMIT, Wire, in_the_sandbox};

on_both_servers! {
    a_time_limit_releases_the_acquired_nodes,
    a_zero_timeout_reads_once,
    an_interrupt_releases_the_acquired_nodes,
    the_loss_of_one_lock_releases_the_others,
    a_takeover_at_the_last_moment_is_noticed,
    a_newer_lock_of_the_same_identity_keeps_its_reason,
    a_dropped_future_releases_the_acquired_nodes,
    an_error_releases_the_acquired_nodes,
    an_unanswered_lock_is_released_after_an_interrupt,
    the_lock_before_an_unanswered_hold_is_kept,
    a_lock_that_was_stored_with_other_fields_is_not_called_free,
    a_lost_race_to_create_a_lease_times_out,
}

async fn a_time_limit_releases_the_acquired_nodes(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &b).await;
    let options = for_seconds(60).wait(Some(TIME_LIMIT));
    let both = [a.clone(), b.clone()];
    let alice = cluster.holder("alice");
    let mut tries = 0;
    let outcome = loop {
        let outcome = Locking::begin(&alice, &both, options.clone()).ends().await;
        // After a time limit, a release has two seconds. A busy server may stall for longer.
        if !matches!(outcome.failed.get(&a), Some(SetError::NotReleased { .. })) {
            break outcome;
        }
        tries += 1;
        assert!(tries < 10, "{outcome:?}");
        release(&alice, &a).await;
    };
    assert!(outcome.held.is_empty() && !outcome.interrupted);
    match &outcome.failed[&b] {
        SetError::TimedOut(Some(refused)) => assert_eq!(refused.refusal, Refusal::Held),
        other => panic!("{other:?}"),
    }
    assert_eq!(holder(&cluster, &a).await, "");
}

async fn a_zero_timeout_reads_once(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let alice = cluster.holder("alice");
    let options = for_seconds(60).wait(Some(Duration::ZERO));
    loop {
        let outcome = Locking::begin(&alice, &both, options.clone()).ends().await;
        if outcome.held.len() == both.len() {
            break;
        }
        // A set with a timeout of zero does not wait long for a server that stalls.
        let is_unanswered = |error: &SetError| matches!(error, SetError::TimedOut(None));
        assert!(outcome.failed.values().any(is_unanswered), "{outcome:?}");
    }
    release(&alice, &both[0]).await;
    take(&cluster.holder("bob"), &both[0]).await;
    let outcome = Locking::begin(&alice, &both[..1], options).ends().await;
    assert!(matches!(
        &outcome.failed[&both[0]],
        SetError::TimedOut(Some(_))
    ));
}

async fn an_interrupt_releases_the_acquired_nodes(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &b).await;
    let alice = cluster.holder("alice");
    let both = [a.clone(), b.clone()];
    let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
    locking.blocked().await;
    locking.interrupt();
    let outcome = locking.ends().await;
    assert!(outcome.interrupted && outcome.held.is_empty());
    let ended = &outcome.failed[&b];
    assert!(
        matches!(ended, SetError::Interrupted { may_land: false }),
        "{ended:?}"
    );
    assert_eq!(holder(&cluster, &a).await, "");
}

async fn the_loss_of_one_lock_releases_the_others(cluster: Cluster) {
    let [a, b, c] = nodes(&cluster, ["a", "b", "c"]).await;
    take(&cluster.holder("bob"), &c).await;
    let alice = cluster.holder("alice");
    let all = [a.clone(), b.clone(), c];
    let mut locking = Locking::begin(&alice, &all, for_seconds(60).wait(None));
    assert_eq!(locking.blocked().await.0, 2);
    let carol = cluster.holder("carol");
    let lease = carol.get(&b).await.unwrap().unwrap();
    let fire = Hold::new("fire");
    carol
        .hold_seen(&b, &fire, Some(&lease), None)
        .await
        .unwrap();
    let outcome = locking.ends().await;
    match &outcome.failed[&b] {
        SetError::Lock(Error::Lost(lost)) => {
            assert_eq!(lost.by, LostBy::TakeOver("kubeadm:carol".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    assert!(outcome.held.is_empty());
    assert_eq!(holder(&cluster, &a).await, "");
    assert_eq!(holder(&cluster, &b).await, "kubeadm:carol");
}

async fn a_takeover_at_the_last_moment_is_noticed(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let (carol, node) = (cluster.holder("carol"), both[0].clone());
    let end = format!("/{node}");
    let mut writes = 0;
    // The second write is the check at the end.
    let wire = Wire::planned(move |passing| {
        writes += usize::from(passing.is_write() && passing.path.ends_with(&end));
        if passing.is_write() && passing.path.ends_with(&end) && writes == 2 {
            let (carol, node) = (carol.clone(), node.clone());
            return Fate::Meanwhile(Box::pin(async move {
                let lease = carol.get(&node).await.unwrap().unwrap();
                carol.force_release(&lease, &Release::new()).await.unwrap();
            }));
        }
        Fate::Pass
    });
    let alice = cluster.holder_on(&wire, "alice");
    let options = for_seconds(60).wait(None);
    let outcome = Locking::begin(&alice, &both, options).ends().await;
    match &outcome.failed[&both[0]] {
        SetError::Lock(Error::Lost(lost)) => assert_eq!(lost.by, LostBy::Release),
        other => panic!("{other:?}"),
    }
    assert!(outcome.held.is_empty());
    assert_eq!(holder(&cluster, &both[1]).await, "");
}

/// What a waiting set writes last about an earlier lock is for that lock alone.
async fn a_newer_lock_of_the_same_identity_keeps_its_reason(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let colleague = cluster.holder("alice");
    take(&colleague, &both[0]).await;
    let (other, node) = (colleague.clone(), both[0].clone());
    let mut is_over = false;
    let wire = Wire::planned(move |passing| {
        let reason = &passing.body["metadata"]["annotations"]["kubectl-maint.dev/reason"];
        if is_over || reason != "new" || !passing.path.ends_with(&format!("/{node}")) {
            return Fate::Pass;
        }
        is_over = true;
        let (other, node) = (other.clone(), node.clone());
        Fate::Meanwhile(Box::pin(async move {
            release(&other, &node).await;
            let theirs = Acquire::new().reason("theirs");
            other.try_acquire(&node, &theirs).await.unwrap();
        }))
    });
    let alice = cluster.holder_on(&wire, "alice");
    let new = Acquire::new().reason("new").reentry(true);
    let options = SetOptions::acquire(new).wait(None);
    let outcome = Locking::begin(&alice, &both, options).ends().await;
    let failed = &outcome.failed[&both[0]];
    assert!(
        matches!(failed, SetError::Lock(Error::Lost(_))),
        "{failed:?}"
    );
    assert!(outcome.held.is_empty());
    assert_eq!(holder(&cluster, &both[1]).await, "");
    let lease = colleague.get(&both[0]).await.unwrap().expect("a Lease");
    assert_eq!(
        (lease.holder(), lease.reason()),
        (Some("alice"), Some("theirs"))
    );
}

async fn a_dropped_future_releases_the_acquired_nodes(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &b).await;
    let alice = cluster.holder("alice");
    let both = [a.clone(), b];
    let mut locking = Locking::begin(&alice, &both, for_seconds(3600).wait(None));
    assert_eq!(locking.blocked().await.0, 1);
    locking.abandon().await;
    // The time limit is long before the expiry of the lock.
    let carol = cluster.holder("carol");
    let options = Acquire::new();
    let waiting = carol.acquire_when_free(&a, &options, |_| ());
    let change = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert_eq!(
        change.unwrap().unwrap().lease.unwrap().holder(),
        Some("carol")
    );
}

async fn an_error_releases_the_acquired_nodes(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let end = format!("/{}", both[1]);
    let wire = Wire::planned(move |passing| match passing.path.ends_with(&end) {
        true => Fate::Refused(http::StatusCode::FORBIDDEN, None),
        false => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    for options in [for_seconds(60), for_seconds(60).wait(None)] {
        let outcome = Locking::begin(&alice, &both, options).ends().await;
        let failed = &outcome.failed[&both[1]];
        assert!(
            matches!(failed, SetError::Lock(Error::MissingRight { .. })),
            "{failed:?}"
        );
        assert!(outcome.held.is_empty());
        assert_eq!(holder(&cluster, &both[0]).await, "");
    }
}

#[test]
fn a_failed_release_is_reported() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        take(&cluster.holder("bob"), &b).await;
        let end = format!("/{a}");
        let wire = Wire::planned(move |passing| {
            let is_release = passing.body["spec"]["holderIdentity"] == "";
            match is_release && passing.path.ends_with(&end) {
                true => Fate::Swallowed,
                false => Fate::Pass,
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let both = [a.clone(), b.clone()];
        let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
        locking.blocked().await;
        let begun = tokio::time::Instant::now();
        locking.interrupt();
        let outcome = locking.ends().await;
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "one bounded attempt"
        );
        match &outcome.failed[&a] {
            SetError::NotReleased { lock_id, cause } => {
                assert!(lock_id.is_some());
                assert!(matches!(**cause, SetError::Interrupted { may_land: true }));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn locks_with_little_time_left_are_renewed_before_success_is_reported() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let both = nodes(&cluster, ["a", "b"]).await;
        // The answer is late, so little time of either lock is left.
        let slow = tokio::time::sleep(Duration::from_secs(5));
        let wire = before_the_write_to(&both[1], Box::pin(slow));
        let alice = cluster.holder_on(&wire, "alice");
        let outcome = at_once(&alice, &both, &for_seconds(6)).await;
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        let mut written = written(&wire);
        written.sort();
        let [a, b] = both.clone();
        assert_eq!(written, [a.clone(), a, b.clone(), b]);
        let left = |node: &str| {
            outcome.held[node]
                .deadline
                .unwrap()
                .since(cluster.env.boot())
        };
        for node in &both {
            assert!(left(node).to_duration() >= Duration::from_secs(2), "{node}");
        }
    });
}

/// A wire on which the first write to `node` gets no answer, and a signal that it has taken effect.
fn unanswered_write_to(node: &str) -> (Wire, oneshot::Receiver<()>) {
    let (landed, has_landed) = oneshot::channel();
    let (end, mut landed) = (format!("/{node}"), Some(landed));
    let wire = Wire::planned(move |passing| {
        let is_it = passing.is_write() && passing.path.ends_with(&end);
        match landed.take_if(|_| is_it) {
            Some(landed) => Fate::AnswerLost(Box::pin(async {
                landed.send(()).expect("the test waits for it");
                pending::<()>().await;
            })),
            None => Fate::Pass,
        }
    });
    (wire, has_landed)
}

async fn an_unanswered_lock_is_released_after_an_interrupt(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let (wire, has_landed) = unanswered_write_to(&both[1]);
    let alice = cluster.holder_on(&wire, "alice");
    let mut locking = Locking::begin(&alice, &both, for_seconds(60));
    has_landed.await.expect("it is written");
    locking.interrupt();
    let outcome = locking.ends().await;
    assert!(outcome.interrupted && outcome.held.is_empty());
    let failed = &outcome.failed[&both[1]];
    assert!(
        matches!(failed, SetError::Interrupted { may_land: false }),
        "{failed:?}"
    );
    for node in &both {
        assert_eq!(holder(&cluster, node).await, "");
        assert!(!alice.has_open_write(node));
    }
}

#[test]
fn an_unanswered_lock_is_released_after_a_failure() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let both = nodes(&cluster, ["a", "b"]).await;
        let ends = both.each_ref().map(|node| format!("/leases/{node}"));
        let (mut landed, mut gave_up) = (false, false);
        // Before the first node is released, all further requests about the second node are refused.
        let wire = Wire::planned(move |passing| {
            gave_up |=
                passing.path.ends_with(&ends[0]) && passing.body["spec"]["holderIdentity"] == "";
            if gave_up || !passing.path.ends_with(&ends[1]) {
                return Fate::Pass;
            }
            match (landed, passing.is_write()) {
                (false, false) => Fate::Pass,
                (false, true) => {
                    landed = true;
                    Fate::answer_lost()
                }
                (true, _) => Fate::Refused(StatusCode::SERVICE_UNAVAILABLE, None),
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let outcome = at_once(&alice, &both, &for_seconds(3600)).await;
        assert!(outcome.held.is_empty());
        let failed = &outcome.failed[&both[1]];
        assert!(
            matches!(failed, SetError::Lock(Error::Api(problem)) if problem.is(StatusCode::SERVICE_UNAVAILABLE)),
            "{failed:?}"
        );
        for node in &both {
            assert_eq!(holder(&cluster, node).await, "");
        }
    });
}

/// A wire on which the first write to `late` is delayed for so long that little time of `failing` is left. The writes
/// to `failing` with these numbers are refused.
fn late_beside_failing_renewals(
    late: &str,
    failing: &str,
    fails: impl Fn(usize) -> bool + Send + 'static,
) -> Wire {
    let ends = [format!("/{failing}"), format!("/{late}")];
    let mut writes = [0, 0];
    Wire::planned(move |passing| {
        let at = ends.iter().position(|end| passing.path.ends_with(end));
        let Some(at) = at.filter(|_| passing.is_write()) else {
            return Fate::Pass;
        };
        writes[at] += 1;
        match at {
            0 if fails(writes[0]) => Fate::Refused(StatusCode::FORBIDDEN, None),
            1 if writes[1] == 1 => {
                Fate::Meanwhile(Box::pin(tokio::time::sleep(Duration::from_secs(5))))
            }
            _ => Fate::Pass,
        }
    })
}

#[test]
fn a_lock_is_either_held_or_failed() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        let wire = late_beside_failing_renewals(&b, &a, |write| write == 2);
        let alice = cluster.holder_on(&wire, "alice");
        let both = [a.clone(), b.clone()];
        let outcome = Locking::begin(&alice, &both, for_seconds(6).partial());
        let outcome = outcome.ends().await;
        assert!(matches!(
            outcome.failed[&a],
            SetError::Lock(Error::MissingRight { .. })
        ));
        assert_eq!(outcome.held.keys().collect::<Vec<_>>(), [&b]);
        assert_eq!(holder(&cluster, &a).await, "");
        assert_eq!(holder(&cluster, &b).await, "alice");
    });
}

#[test]
fn more_locks_than_can_be_checked_within_their_duration_are_refused() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let names: [String; 60] = std::array::from_fn(|at| format!("n{at:02}"));
        let all = nodes(&cluster, names.each_ref().map(String::as_str)).await;
        let wire = Wire::every_write(|| {
            Fate::Meanwhile(Box::pin(tokio::time::sleep(Duration::from_millis(100))))
        });
        let alice = cluster.holder_on(&wire, "alice");
        let begun = cluster.env.boot();
        let outcome = Locking::begin(&alice, &all, for_seconds(3).parallel(1));
        let outcome = outcome.ends().await;
        assert!(outcome.held.is_empty());
        let mut failed = outcome.failed.values();
        let is_told = failed.any(|error| matches!(error, SetError::TooSlow(_)));
        assert!(is_told, "{outcome:?}");
        let took = cluster.env.boot().since(begun).to_duration();
        assert!(took < Duration::from_secs(30), "{took:?}");
        for node in &all {
            assert_eq!(holder(&cluster, node).await, "");
        }
    });
}

#[test]
fn a_loss_ends_it_before_the_next_node_is_even_read() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        let (end, (sender, requested)) = (format!("/{b}"), oneshot::channel());
        let mut sender = Some(sender);
        let wire = Wire::planned(move |passing| match passing.path.ends_with(&end) {
            true => {
                sender.take().map(|sender| sender.send(()));
                Fate::Swallowed
            }
            false => Fate::Pass,
        });
        let alice = cluster.holder_on(&wire, "alice");
        let both = [a.clone(), b];
        let locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
        requested.await.expect("it reads the second");
        let carol = cluster.holder("carol");
        let lease = carol.get(&a).await.unwrap().unwrap();
        let begun = cluster.env.boot();
        carol.force_release(&lease, &Release::new()).await.unwrap();
        let outcome = locking.ends().await;
        match &outcome.failed[&a] {
            SetError::Lock(Error::Lost(lost)) => assert_eq!(lost.by, LostBy::Release),
            other => panic!("{other:?}"),
        }
        let took = cluster.env.boot().since(begun).to_duration();
        assert!(took < Duration::from_secs(5), "{took:?}");
    });
}

async fn the_lock_before_an_unanswered_hold_is_kept(cluster: Cluster) {
    let [a] = nodes(&cluster, ["a"]).await;
    take(&cluster.holder("alice"), &a).await;
    let (wire, has_landed) = unanswered_write_to(&a);
    let alice = cluster.holder_on(&wire, "alice");
    let options = SetOptions::hold(Hold::new("disk")).wait(None);
    let mut locking = Locking::begin(&alice, std::slice::from_ref(&a), options);
    has_landed.await.expect("it is written");
    locking.interrupt();
    let outcome = locking.ends().await;
    let failed = &outcome.failed[&a];
    assert!(
        matches!(failed, SetError::Interrupted { may_land: true }),
        "{failed:?}"
    );
    assert_eq!(holder(&cluster, &a).await, "kubeadm:alice");
}

async fn a_lost_race_to_create_a_lease_times_out(cluster: Cluster) {
    let node = cluster.node("a").await;
    let (bob, name) = (cluster.holder("bob"), node.clone());
    // The first write creates the Lease.
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        take(&bob, &name).await;
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let options = for_seconds(60).wait(Some(TIME_LIMIT));
    let outcome = Locking::begin(&alice, std::slice::from_ref(&node), options)
        .ends()
        .await;
    match &outcome.failed[&node] {
        SetError::TimedOut(Some(refused)) => assert_eq!(refused.refusal, Refusal::Held),
        other => panic!("{other:?}"),
    }
    assert!(!alice.has_open_write(&node));
}

#[test]
fn an_unanswered_lock_is_released_after_a_timeout() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a] = nodes(&cluster, ["a"]).await;
        let (wire, _has_landed) = unanswered_write_to(&a);
        let alice = cluster.holder_on(&wire, "alice");
        let options = for_seconds(60).wait(Some(Duration::from_secs(1)));
        let outcome = Locking::begin(&alice, std::slice::from_ref(&a), options)
            .ends()
            .await;
        let failed = &outcome.failed[&a];
        assert!(matches!(failed, SetError::TimedOut(_)), "{failed:?}");
        assert_eq!(holder(&cluster, &a).await, "");
    });
}

#[test]
fn after_the_time_limit_a_release_has_no_more_time_than_after_an_interrupt() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        take(&cluster.holder("bob"), &b).await;
        let end = format!("/{a}");
        let wire = Wire::planned(move |passing| {
            let is_release = passing.body["spec"]["holderIdentity"] == "";
            match is_release && passing.path.ends_with(&end) {
                true => Fate::Swallowed,
                false => Fate::Pass,
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let both = [a.clone(), b];
        let options = for_seconds(60).wait(Some(Duration::from_secs(1)));
        let begun = tokio::time::Instant::now();
        let outcome = Locking::begin(&alice, &both, options).ends().await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        match &outcome.failed[&a] {
            SetError::NotReleased { cause, .. } => {
                let is_unknown = matches!(**cause, SetError::Lock(Error::Unknown { .. }));
                assert!(is_unknown, "nobody interrupted it: {cause:?}");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_lock_from_before_whose_check_fails_is_left_as_found() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        let wire = late_beside_failing_renewals(&b, &a, |write| write >= 2);
        let six = Acquire::new().duration(Duration::from_secs(6));
        cluster.holder("alice").try_acquire(&a, &six).await.unwrap();
        let alice = cluster.holder_on(&wire, "alice");
        let options = SetOptions::acquire(six.reentry(true)).partial();
        let both = [a.clone(), b.clone()];
        let begun = tokio::time::Instant::now();
        let outcome = Locking::begin(&alice, &both, options).ends().await;
        assert!(begun.elapsed() < Duration::from_secs(10), "it ends");
        assert_eq!(outcome.failed.keys().collect::<Vec<_>>(), [&a]);
        assert_eq!(outcome.held.keys().collect::<Vec<_>>(), [&b]);
        assert_eq!(holder(&cluster, &a).await, "alice");
    });
}

#[test]
fn a_failed_set_leaves_what_an_earlier_call_acquired() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let both = nodes(&cluster, ["a", "b"]).await;
        let (wire, has_landed) = unanswered_write_to(&both[0]);
        let alice = cluster.holder_on(&wire, "alice");
        let options = Acquire::new();
        tokio::select! {
            _ = alice.try_acquire(&both[0], &options) => panic!("it gets no answer"),
            landed = has_landed => landed.expect("it is written"),
        }
        let outcome = Locking::begin(&alice, &both, for_seconds(60)).ends().await;
        let failed = &outcome.failed[&both[0]];
        assert!(
            matches!(failed, SetError::Lock(Error::Refused(refused)) if refused.refusal == Refusal::HeldByCaller),
            "{failed:?}"
        );
        assert_eq!(holder(&cluster, &both[0]).await, "alice");
    });
}

#[test]
fn a_failed_set_names_earlier_locks_that_it_may_have_rewritten() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let both = nodes(&cluster, ["a", "b"]).await;
        let before = Acquire::new().reason("before");
        for node in &both {
            let alice = cluster.holder("alice");
            alice.try_acquire(node, &before).await.unwrap();
        }
        let end = format!("/{}", both[1]);
        let wire = Wire::planned(move |passing| {
            let written = &passing.body["metadata"]["annotations"]["kubectl-maint.dev/reason"];
            match written == "after" && passing.path.ends_with(&end) {
                true => Fate::Refused(StatusCode::FORBIDDEN, None),
                false => Fate::Pass,
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let after = Acquire::new().reason("after").reentry(true);
        let options = SetOptions::acquire(after).wait(None).parallel(1);
        let outcome = Locking::begin(&alice, &both, options).ends().await;
        assert!(outcome.held.is_empty());
        assert_eq!(outcome.failed.keys().collect::<Vec<_>>(), [&both[1]]);
        let lease = alice.get(&both[0]).await.unwrap().unwrap();
        assert_eq!(lease.reason(), Some("after"));
        assert!(outcome.rewritten.contains(&both[0]), "{outcome:?}");
    });
}

/// An admission webhook may change the write: without the nonce, its sender can't recognize it.
async fn a_lock_that_was_stored_with_other_fields_is_not_called_free(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let mut is_first = true;
    let wire = Wire::every_write(move || match std::mem::take(&mut is_first) {
        true => Fate::Altered(|lease| lease["metadata"]["annotations"] = json!({})),
        false => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let outcome = at_once(&alice, &both, &for_seconds(60)).await;
    assert!(outcome.held.is_empty(), "{outcome:?}");
    let mut failed = Vec::new();
    for node in &both {
        match outcome.failed.get(node) {
            None => assert_eq!(holder(&cluster, node).await, "", "it was released"),
            Some(SetError::Lock(Error::Unknown {
                source: ApiError::Altered,
                ..
            })) => {
                assert_eq!(holder(&cluster, node).await, "alice");
                failed.push(node);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(failed.len(), 1, "{outcome:?}");
}
