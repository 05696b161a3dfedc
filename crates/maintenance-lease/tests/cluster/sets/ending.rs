//! Sets that end early: time limits, interrupts, losses, futures that are dropped.

use std::time::Duration;

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Acquire, Error, Hold, LostBy, Release, SetError};

use super::{
    Locking, at_once, before_the_write_to, for_seconds, holder, nodes, release, take, written,
};
use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, in_the_sandbox};

on_both_servers! {
    a_time_limit_gives_back_what_was_taken,
    who_has_no_time_looks_once,
    an_interrupt_gives_back_what_was_taken,
    the_loss_of_one_gives_back_the_others,
    what_was_broken_at_the_last_moment_is_noticed,
    dropped_it_gives_back_what_was_taken,
    an_error_gives_back_what_was_taken,
}

async fn a_time_limit_gives_back_what_was_taken(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &b).await;
    let options = for_seconds(60).wait(Some(Duration::from_secs(1)));
    let both = [a.clone(), b.clone()];
    let outcome = Locking::begin(&cluster.holder("alice"), &both, options)
        .ends()
        .await;
    assert!(outcome.held.is_empty() && !outcome.interrupted);
    match &outcome.failed[&b] {
        SetError::TimedOut(Some(refused)) => assert_eq!(refused.refusal, Refusal::Held),
        other => panic!("{other:?}"),
    }
    assert_eq!(holder(&cluster, &a).await, "");
}

async fn who_has_no_time_looks_once(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let alice = cluster.holder("alice");
    let options = for_seconds(60).wait(Some(Duration::ZERO));
    let locking = Locking::begin(&alice, &both, options.clone());
    locking.locks_all(&both).await;
    release(&alice, &both[0]).await;
    take(&cluster.holder("bob"), &both[0]).await;
    let outcome = Locking::begin(&alice, &both[..1], options).ends().await;
    assert!(matches!(
        &outcome.failed[&both[0]],
        SetError::TimedOut(Some(_))
    ));
}

async fn an_interrupt_gives_back_what_was_taken(cluster: Cluster) {
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

async fn the_loss_of_one_gives_back_the_others(cluster: Cluster) {
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

async fn what_was_broken_at_the_last_moment_is_noticed(cluster: Cluster) {
    let both = nodes(&cluster, ["a", "b"]).await;
    let (carol, node) = (cluster.holder("carol"), both[0].clone());
    let end = format!("/{node}");
    let mut writes = 0;
    // The second write is the one that makes sure.
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

async fn dropped_it_gives_back_what_was_taken(cluster: Cluster) {
    let [a, b] = nodes(&cluster, ["a", "b"]).await;
    take(&cluster.holder("bob"), &b).await;
    let alice = cluster.holder("alice");
    let both = [a.clone(), b];
    let mut locking = Locking::begin(&alice, &both, for_seconds(3600).wait(None));
    assert_eq!(locking.blocked().await.0, 1);
    locking.abandon().await;
    // Long before it runs out.
    let carol = cluster.holder("carol");
    let options = Acquire::new();
    let waiting = carol.acquire_when_free(&a, &options, |_| ());
    let change = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert_eq!(
        change.unwrap().unwrap().lease.unwrap().holder(),
        Some("carol")
    );
}

async fn an_error_gives_back_what_was_taken(cluster: Cluster) {
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
fn what_cannot_be_given_back_is_said() {
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
            SetError::NotReleased { token, cause } => {
                assert!(token.is_some());
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
        // Its answer is late, so that there is little left of either.
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
