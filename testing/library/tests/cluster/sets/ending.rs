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
    a_time_limit_ends_the_wait,
    a_zero_timeout_tries_once,
    an_interrupt_ends_the_wait,
    a_takeover_at_the_last_moment_is_noticed,
    a_dropped_future_releases_the_acquired_nodes,
    an_error_releases_the_acquired_nodes,
    an_unanswered_lock_is_released_after_an_interrupt,
    the_lock_before_an_unanswered_hold_is_kept,
    a_lock_that_was_stored_with_other_fields_is_not_called_free,
    a_lost_race_to_create_a_lease_times_out,
}

async fn a_time_limit_ends_the_wait(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &b).await;
    let options = for_seconds(60).wait(Some(TIME_LIMIT));
    let alice = cluster.holder("alice");
    let outcome = Locking::begin(&alice, &[a.clone(), b.clone()], options);
    let outcome = outcome.ends().await;
    assert!(outcome.held.is_empty() && !outcome.interrupted);
    match &outcome.failed[&b] {
        SetError::TimedOut(Some(refused)) => assert_eq!(refused.refusal, Refusal::Held),
        other => panic!("{other:?}"),
    }
    assert_eq!(holder(&cluster, &a).await, "");
}

async fn a_zero_timeout_tries_once(cluster: Cluster) {
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

async fn an_interrupt_ends_the_wait(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &both[1]).await;
    let alice = cluster.holder("alice");
    let mut locking = Locking::begin(&alice, &both, for_seconds(60).wait(None));
    locking.blocked().await;
    locking.interrupt();
    let outcome = locking.ends().await;
    assert!(outcome.interrupted && outcome.held.is_empty());
    let ended = &outcome.failed[&both[1]];
    assert!(
        matches!(ended, SetError::Interrupted { may_land: false }),
        "{ended:?}"
    );
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

async fn a_dropped_future_releases_the_acquired_nodes(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let (wire, has_landed) = unanswered_write_to(&both[1]);
    let alice = cluster.holder_on(&wire, "alice");
    let locking = Locking::begin(&alice, &both, for_seconds(3600).wait(None));
    has_landed.await.expect("it is written");
    assert_eq!(holder(&cluster, &both[0]).await, "alice");
    locking.abandon().await;
    // The time limit is long before the expiry of the lock.
    let carol = cluster.holder("carol");
    let options = Acquire::new();
    let waiting = carol.acquire_when_free(&both[0], &options, |_| ());
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

/// The call ends: whether it still has the lock is not known.
#[test]
fn a_give_back_without_an_answer_is_reported_after_two_seconds() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let [a, b] = nodes(&cluster, ["a", "b"]).await;
        let (bob, rival) = (cluster.holder("bob"), b.clone());
        let mut taking = Some(Box::pin(async move { take(&bob, &rival).await }));
        let ends = [&a, &b].map(|node| format!("/{node}"));
        let wire = Wire::planned(move |passing| {
            let is_of = |end: &String| passing.is_write() && passing.path.ends_with(end);
            if passing.body["spec"]["holderIdentity"] == "" && is_of(&ends[0]) {
                Fate::Swallowed
            } else if let Some(taking) = taking.take_if(|_| is_of(&ends[1])) {
                Fate::Meanwhile(taking)
            } else {
                Fate::Pass
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let begun = tokio::time::Instant::now();
        let options = for_seconds(60).wait(None);
        let outcome = Locking::begin(&alice, &[a.clone(), b], options)
            .ends()
            .await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        match &outcome.failed[&a] {
            SetError::NotReleased { change, cause } => {
                assert!(change.lock_id().is_some());
                assert!(matches!(**cause, Error::Unknown { .. }), "{cause:?}");
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

#[test]
fn what_a_slow_try_holds_is_renewed() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let all = nodes(&cluster, ["a", "b", "c"]).await;
        let slow = tokio::time::sleep(Duration::from_secs(5));
        let wire = before_the_write_to(&all[1], Box::pin(slow));
        let alice = cluster.holder_on(&wire, "alice");
        let locking = Locking::begin(&alice, &all, for_seconds(6).wait(None));
        locking.locks_all(&all).await;
        let [a, b, c] = all;
        let mut written = written(&wire);
        // Both are renewed at once.
        written[2..4].sort();
        assert_eq!(written[..5], [a.clone(), b.clone(), a, b, c]);
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
        let is_lost = failed.any(|error| matches!(error, SetError::Lock(Error::Lost(_))));
        assert!(is_lost, "{outcome:?}");
        let took = cluster.env.boot().since(begun).to_duration();
        assert!(took < Duration::from_secs(30), "{took:?}");
        for node in &all {
            assert_eq!(holder(&cluster, node).await, "");
        }
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
