//! The states of a Lease that was written by hand at noon, and the result of acquiring in each.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use maintenance_lease::protocol::{Now, Refusal, Span, State};
use maintenance_lease::{Acquire, Done, Hold, Release, Renew, SideEffect};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, annotation, micros, noon, noon_and, refusal};

on_both_servers! {
    without_a_lease_it_is_free_and_acquiring_makes_one,
    without_a_holder_it_is_free,
    up_to_three_seconds_after_its_end_it_is_held,
    later_it_is_expired_and_anyone_may_take_it,
    a_hold_made_by_hand_outlives_its_times,
    a_holder_without_times_has_expired,
    missing_fields_count_as_the_least_they_can_mean,
    a_renewal_in_the_future_holds_until_it_runs_out,
    a_time_in_year_9999_is_held_and_breaks_no_list,
    an_end_beyond_every_duration_is_not_moved_earlier,
    the_last_transition_is_followed_by_the_first,
    a_lease_in_deletion_is_left_alone,
}

on_both_servers! { alone: a_lease_with_a_strategy_is_left_alone }

fn state_at(lease: &maintenance_lease::NodeLease, time: DateTime<Utc>) -> State {
    lease.state(Now::at(time.into()))
}

fn for_a_minute() -> Acquire {
    Acquire::new().duration(Duration::from_secs(60))
}

/// bob has held the lock since noon, for 60 s.
fn held_by_bob() -> Value {
    json!({
        "holderIdentity": "bob",
        "acquireTime": micros(noon()),
        "renewTime": micros(noon()),
        "leaseDurationSeconds": 60,
        "leaseTransitions": 7,
    })
}

async fn without_a_lease_it_is_free_and_acquiring_makes_one(cluster: Cluster) {
    cluster.make_namespace().await;
    let node = cluster.name("n");
    let uid = cluster.create_node(&node).await;
    let alice = cluster.holder_at(noon(), "alice");
    assert!(alice.get(&node).await.unwrap().is_none());

    let options = for_a_minute().reason("new kernel");
    let change = alice.try_acquire(&node, &options).await.unwrap();

    assert_eq!(change.done, Done::Acquired);
    assert_eq!(change.state_before, State::Free);
    assert!(change.before.is_none());
    assert_eq!(change.side_effects, [SideEffect::LeaseCreated]);
    let lease = cluster.lease(&node).await;
    let metadata = &lease["metadata"];
    assert_eq!(
        metadata["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}])
    );
    assert_eq!(
        lease["spec"],
        json!({
            "holderIdentity": "alice",
            "acquireTime": "2026-03-01T12:00:00.000000Z",
            "renewTime": "2026-03-01T12:00:00.000000Z",
            "leaseDurationSeconds": 60,
            "leaseTransitions": 1,
        })
    );
    assert_eq!(annotation(&lease, "reason"), "new kernel");
    let lock_id = change.lock_id().unwrap();
    assert_eq!(metadata["uid"], lock_id.uid());
    assert_eq!(lock_id.transitions(), 1);
    assert_eq!(
        annotation(&lease, "acquisition"),
        &format!("1-{}", lock_id.nonce())
    );
    assert_eq!(
        change.fencing.unwrap().to_string(),
        metadata["resourceVersion"].as_str().unwrap()
    );
}

async fn without_a_holder_it_is_free(cluster: Cluster) {
    for (name, spec) in [
        ("absent", json!({})),
        (
            "empty",
            json!({"holderIdentity": "", "leaseTransitions": 4}),
        ),
    ] {
        let node = cluster.node(name).await;
        cluster.write_lease(&node, spec).await;
        let alice = cluster.holder_at(noon(), "alice");
        let lease = alice.get(&node).await.unwrap().unwrap();
        assert_eq!(state_at(&lease, noon()), State::Free);
        let change = alice.try_acquire(&node, &for_a_minute()).await.unwrap();
        assert_eq!(change.state_before, State::Free);
        assert_eq!(change.side_effects, []);
    }
}

async fn up_to_three_seconds_after_its_end_it_is_held(cluster: Cluster) {
    let node = cluster.node("n").await;
    let written = cluster.write_lease(&node, held_by_bob()).await;
    for seconds in [0, 60, 62, 63] {
        let time = noon_and(seconds);
        let alice = cluster.holder_at(time, "alice");
        let refused = refusal(alice.try_acquire(&node, &for_a_minute()).await);
        assert_eq!(refused.refusal, Refusal::Held, "{seconds} s after noon");
        let until = noon_and(60).into();
        assert_eq!(refused.state, State::Held { until });
    }
    assert_eq!(cluster.lease(&node).await, written);
}

async fn later_it_is_expired_and_anyone_may_take_it(cluster: Cluster) {
    let moments = [
        ("at-once", noon_and(63) + TimeDelta::microseconds(1)),
        ("a-second-later", noon_and(64)),
        ("a-day-later", noon_and(86_400)),
    ];
    for (name, time) in moments {
        let node = cluster.node(name).await;
        cluster.write_lease(&node, held_by_bob()).await;
        let alice = cluster.holder_at(time, "alice");
        let change = alice.try_acquire(&node, &for_a_minute()).await.unwrap();
        let since = Some(noon_and(60).into());
        assert_eq!(change.state_before, State::Expired { since }, "{name}");
        assert_eq!(change.before.unwrap().holder(), Some("bob"));
        let lease = cluster.lease(&node).await;
        assert_eq!(lease["spec"]["holderIdentity"], "alice");
        assert_eq!(lease["spec"]["acquireTime"], micros(time));
        assert_eq!(lease["spec"]["leaseTransitions"], 8);
        assert_eq!(annotation(&lease, "last-holder"), "bob");
    }
}

async fn a_hold_made_by_hand_outlives_its_times(cluster: Cluster) {
    let long_ago = json!({
        "holderIdentity": "kubeadm-x",
        "renewTime": micros(noon_and(-86_400)),
        "leaseDurationSeconds": 1,
    });
    for (name, spec) in [
        ("bare", json!({"holderIdentity": "kubeadm-x"})),
        ("long-ago", long_ago),
    ] {
        let node = cluster.node(name).await;
        let written = cluster.write_lease(&node, spec).await;
        let alice = cluster.holder_at(noon(), "alice");
        let refused = refusal(alice.try_acquire(&node, &for_a_minute()).await);
        assert_eq!(refused.refusal, Refusal::AdminHold);
        assert_eq!(refused.state, State::AdminHold);
        let reentry = for_a_minute().reentry(true);
        let refused = refusal(alice.try_acquire(&node, &reentry).await);
        assert_eq!(refused.refusal, Refusal::AdminHold);
        let refused = refusal(alice.hold(&node, &Hold::new("mine")).await);
        assert_eq!(refused.refusal, Refusal::AdminHold);
        let refused = refusal(alice.unhold(&node, None).await);
        assert_eq!(refused.refusal, Refusal::AdminHold);
        assert_eq!(cluster.lease(&node).await, written);

        let seen = alice.get(&node).await.unwrap().unwrap();
        let change = alice.unhold(&node, Some(&seen)).await.unwrap();
        assert_eq!(change.done, Done::Released);
        let change = alice.try_acquire(&node, &for_a_minute()).await.unwrap();
        assert_eq!(change.state_before, State::Free);
    }
}

async fn a_holder_without_times_has_expired(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster
        .write_lease(&node, json!({"holderIdentity": "bob"}))
        .await;
    let alice = cluster.holder_at(noon(), "alice");
    let change = alice.try_acquire(&node, &for_a_minute()).await.unwrap();
    assert_eq!(change.state_before, State::Expired { since: None });
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

async fn missing_fields_count_as_the_least_they_can_mean(cluster: Cluster) {
    let no_renewal = json!({
        "holderIdentity": "bob",
        "acquireTime": micros(noon()),
        "leaseDurationSeconds": 60,
    });
    let no_duration = json!({"holderIdentity": "bob", "renewTime": micros(noon())});
    for (name, spec, end) in [
        ("no-renewal", no_renewal, noon_and(60)),
        ("no-duration", no_duration, noon()),
    ] {
        let node = cluster.node(name).await;
        cluster.write_lease(&node, spec).await;
        let margin = TimeDelta::seconds(3);
        let alice = cluster.holder_at(end + margin, "alice");
        let refused = refusal(alice.try_acquire(&node, &for_a_minute()).await);
        assert_eq!(refused.state, State::Held { until: end.into() }, "{name}");
        let alice = cluster.holder_at(end + margin + TimeDelta::microseconds(1), "alice");
        let change = alice.try_acquire(&node, &for_a_minute()).await.unwrap();
        let since = Some(end.into());
        assert_eq!(change.state_before, State::Expired { since }, "{name}");
    }
}

async fn a_renewal_in_the_future_holds_until_it_runs_out(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, held_by_bob()).await;
    let time = noon_and(-600);
    let alice = cluster.holder_at(time, "alice");
    let refused = refusal(alice.try_acquire(&node, &for_a_minute()).await);
    assert_eq!(refused.refusal, Refusal::Held);
    let lease = refused.lease.unwrap();
    let flags = lease.flags(Now::at(time.into()));
    assert!(flags.clock_ahead);
    assert!(!flags.overlong);
    assert!(!lease.flags(Now::at(noon().into())).clock_ahead);
    assert!(lease.flags(Now::at(noon_and(-3605).into())).overlong);
}

async fn a_time_in_year_9999_is_held_and_breaks_no_list(cluster: Cluster) {
    let (odd, plain) = (cluster.node("odd").await, cluster.node("plain").await);
    cluster.write_lease(&plain, held_by_bob()).await;
    cluster
        .write_lease(
            &odd,
            json!({
                "holderIdentity": "bob",
                "acquireTime": micros(noon()),
                "renewTime": "9999-12-31T23:59:59.000000Z",
                "leaseDurationSeconds": 60,
            }),
        )
        .await;
    let alice = cluster.holder_at(noon_and(3600), "alice");

    let leases = alice.list().await.unwrap();

    let now = Now::at(noon_and(3600).into());
    assert!(matches!(leases[&plain].state(now), State::Expired { .. }));
    assert!(matches!(leases[&odd].state(now), State::Held { .. }));
    assert!(leases[&odd].flags(now).unreadable_time);
    assert_eq!(leases[&odd].renewed(), None);
    let refused = refusal(alice.try_acquire(&odd, &for_a_minute()).await);
    assert_eq!(refused.refusal, Refusal::Held);

    let bob = cluster.holder_at(noon_and(3600), "bob");
    bob.release(&odd, &Release::new()).await.unwrap();
    let lease = cluster.lease(&odd).await;
    assert_eq!(lease["spec"]["renewTime"], micros(noon_and(3600)));
    let change = alice.try_acquire(&odd, &for_a_minute()).await.unwrap();
    assert_eq!(change.state_before, State::Free);
}

async fn an_end_beyond_every_duration_is_not_moved_earlier(cluster: Cluster) {
    let node = cluster.node("n").await;
    let century = noon() + TimeDelta::days(36_500);
    cluster
        .write_lease(
            &node,
            json!({
                "holderIdentity": "alice",
                "acquireTime": micros(noon()),
                "renewTime": micros(century),
                "leaseDurationSeconds": 60,
            }),
        )
        .await;
    let alice = cluster.holder_at(noon_and(10), "alice");
    let end = async || alice.get(&node).await.unwrap().unwrap().end().unwrap();
    let before = end().await;
    alice.renew(&node, &Renew::new()).await.unwrap();
    let renewed = end().await;
    assert!(renewed > before, "a renewal is seen by those who wait");
    let reenter = for_a_minute().reentry(true);
    alice.try_acquire(&node, &reenter).await.unwrap();
    assert!(end().await > renewed);
    assert!(end().await - before < Span::seconds(1));
}

async fn the_last_transition_is_followed_by_the_first(cluster: Cluster) {
    let node = cluster.node("n").await;
    let spec = json!({"holderIdentity": "", "leaseTransitions": i32::MAX});
    cluster.write_lease(&node, spec).await;
    let alice = cluster.holder_at(noon(), "alice");
    alice.try_acquire(&node, &for_a_minute()).await.unwrap();
    assert_eq!(cluster.lease(&node).await["spec"]["leaseTransitions"], 0);
    alice.release(&node, &Release::new()).await.unwrap();
    alice.try_acquire(&node, &for_a_minute()).await.unwrap();
    assert_eq!(cluster.lease(&node).await["spec"]["leaseTransitions"], 1);
}

async fn a_lease_in_deletion_is_left_alone(cluster: Cluster) {
    let node = cluster.node("n").await;
    let metadata = json!({"name": node, "finalizers": ["example.com/looks-first"]});
    let mut spec = held_by_bob();
    spec["holderIdentity"] = json!("alice");
    cluster.write_lease_with(metadata, spec).await;
    cluster.delete_lease(&node).await;
    assert_left_alone(&cluster, &node, Refusal::Deleting).await;
    cluster
        .patch_lease(&node, json!({"metadata": {"finalizers": null}}))
        .await;
}

/// Servers drop this field without a message unless a feature gate is on, so this case has its own
/// server.
async fn a_lease_with_a_strategy_is_left_alone(cluster: Cluster) {
    let node = cluster.node("n").await;
    let mut spec = held_by_bob();
    spec["holderIdentity"] = json!("alice");
    spec["strategy"] = json!("OldestEmulationVersion");
    cluster.write_elected_lease(&node, spec).await;
    assert_left_alone(&cluster, &node, Refusal::Elected).await;
}

async fn assert_left_alone(cluster: &Cluster, node: &str, refusal_: Refusal) {
    let before = cluster.lease(node).await;
    for time in [noon(), noon_and(3600)] {
        let alice = cluster.holder_at(time, "alice");
        let seen = alice.get(node).await.unwrap().unwrap();
        let refusals = [
            refusal(alice.try_acquire(node, &Acquire::new()).await),
            refusal(alice.try_acquire(node, &Acquire::new().reentry(true)).await),
            refusal(alice.renew(node, &Renew::new()).await),
            refusal(alice.release(node, &Release::new()).await),
            refusal(alice.force_release(&seen, &Release::new()).await),
            refusal(alice.hold(node, &Hold::new("mine")).await),
            refusal(
                alice
                    .hold(node, &Hold::new("mine").take_over([seen.clone()]))
                    .await,
            ),
            refusal(alice.unhold(node, None).await),
        ];
        for refused in refusals {
            assert_eq!(refused.refusal, refusal_);
        }
    }
    assert_eq!(cluster.lease(node).await, before);
}
