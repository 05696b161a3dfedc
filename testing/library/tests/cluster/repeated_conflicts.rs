//! Conflicts, throttling and failing servers: a verb ends with a decision or an error within its
//! time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use http::{Response, StatusCode, header};
use kube::client::Body;
use maintenance_lease::protocol::{Refusal, Span};
use maintenance_lease::{Acquire, Done, Error, Maintenance, Release, Renew, SideEffect};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, Fate, TIME_LIMIT, Wire, in_the_sandbox, refusal};

on_both_servers! {
    extensions_at_the_same_time_end_alike,
    conflicts_that_stop_end_with_the_lease,
    repeated_conflicts_end_with_a_refusal_if_another_client_wins,
    endless_conflicts_end_at_the_time_limit,
    a_lease_deleted_before_the_write_is_made_anew_by_acquiring,
    a_lease_deleted_before_the_write_is_no_longer_held,
    a_lease_that_comes_and_goes_ends_at_the_time_limit,
    throttled_reads_are_reported,
    a_throttled_write_waits_for_retry_after,
    a_write_throttled_for_longer_than_anyone_waits_is_reported,
    a_write_that_a_policy_finds_early_is_decided_again,
    a_write_that_a_policy_always_refuses_is_reported,
    a_wait_continues_after_a_policy_refused_an_early_write,
    an_unavailable_server_is_reported,
    a_refused_write_is_reported_as_not_done,
}

/// A wire on which `something` happens before each of the first `times` writes.
fn before_writes<F>(times: u32, something: impl Fn(u32) -> F + Send + 'static) -> Wire
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut count = 0;
    Wire::every_write(move || {
        count += 1;
        if count <= times {
            Fate::Meanwhile(Box::pin(something(count)))
        } else {
            Fate::Pass
        }
    })
}

/// A wire on which somebody changes the node's Lease before each of the first `times` writes.
fn conflicting_server(cluster: &Cluster, node: &str, times: u32) -> Wire {
    let (cluster, node) = (cluster.clone(), node.to_owned());
    before_writes(times, move |_| {
        let (cluster, node) = (cluster.clone(), node.clone());
        async move { cluster.touch_lease(&node).await }
    })
}

async fn conflicts_that_stop_end_with_the_lease(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = conflicting_server(&cluster, &node, 5);
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.side_effects, []);
    assert_eq!(change.lease.unwrap().transitions(), 1);
    assert_eq!(wire.passed().last().unwrap().writes, 6);

    let wire = conflicting_server(&cluster, &node, 5);
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(change.done, Done::Released);
}

/// Each adds a minute to the end that it read first.
async fn extensions_at_the_same_time_end_alike(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    let minute = Duration::from_secs(60);
    let acquire = Acquire::new().duration(10 * minute);
    alice.try_acquire(&node, &acquire).await.unwrap();
    let seen = alice.read(&node, false).await.unwrap();
    let end = async || alice.get(&node).await.unwrap().unwrap().end().unwrap();
    let before = end().await;
    // Each of them writes another time.
    let now = cluster.now();
    let handle = |number| cluster.holder_at(now + TimeDelta::milliseconds(number), "alice");
    let handles: Vec<_> = (0..8).map(handle).collect();
    let options = Renew::new().added(minute);
    let extend = handles
        .iter()
        .map(|handle| handle.renew(seen.clone(), &options));
    for extended in futures::future::join_all(extend).await {
        extended.unwrap();
    }
    let added = end().await - before;
    // Each write rounds the duration up to a whole second.
    assert!((60..=68).contains(&added.ceil_seconds()), "{added:?}");
}

async fn repeated_conflicts_end_with_a_refusal_if_another_client_wins(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let (other, taken) = (cluster.clone(), node.clone());
    let wire = before_writes(3, move |count| {
        let (other, taken) = (other.clone(), taken.clone());
        async move {
            if count < 3 {
                other.touch_lease(&taken).await;
            } else {
                let bob = other.holder("bob");
                bob.try_acquire(&taken, &Acquire::new()).await.unwrap();
            }
        }
    });
    let alice = cluster.holder_on(&wire, "alice");
    let refused = refusal(alice.try_acquire(&node, &Acquire::new()).await);
    assert_eq!(refused.refusal, Refusal::Held);
    assert_eq!(refused.lease.unwrap().holder(), Some("bob"));
    assert_eq!(wire.passed().last().unwrap().writes, 3);
}

async fn endless_conflicts_end_at_the_time_limit(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = conflicting_server(&cluster, &node, u32::MAX);
    let alice = cluster
        .builder_on(&wire, "alice")
        .request_timeout(Some(TIME_LIMIT))
        .build()
        .unwrap();
    let error = alice.try_acquire(&node, &Acquire::new()).await;
    let writes = wire.passed().last().unwrap().writes;
    match error.unwrap_err() {
        Error::Contended {
            node: named,
            intent,
            conflicts,
            ..
        } => {
            assert_eq!((named, intent), (node.clone(), "acquired"));
            assert_eq!(conflicts as usize, writes);
            assert!(writes > 1);
        }
        other => panic!("not contended: {other}"),
    }
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["spec"], json!({}));
}

async fn a_lease_deleted_before_the_write_is_made_anew_by_acquiring(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster
        .write_lease(&node, json!({"leaseTransitions": 7}))
        .await;
    let (other, deleted) = (cluster.clone(), node.clone());
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        other.delete_lease(&deleted).await;
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.side_effects, [SideEffect::LeaseCreated]);
    assert!(change.before.is_none());
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    assert_eq!(lease["metadata"]["ownerReferences"][0]["name"], node);
}

async fn a_lease_deleted_before_the_write_is_no_longer_held(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let (other, deleted) = (cluster.clone(), node.clone());
    let wire = Wire::first_write(Fate::Meanwhile(Box::pin(async move {
        other.delete_lease(&deleted).await;
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let refused = refusal(alice.renew(&node, &Renew::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHeld);
    assert_eq!(cluster.lease(&node).await, Value::Null);
}

/// Somebody creates the Lease before every write of ours, and deletes it afterwards.
async fn a_lease_that_comes_and_goes_ends_at_the_time_limit(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.make_namespace().await;
    let (other, flickering) = (cluster.clone(), node.clone());
    let there = Arc::new(AtomicU32::new(0));
    let wire = Wire::planned(move |passing| {
        let (other, node, there) = (other.clone(), flickering.clone(), there.clone());
        let is_write = passing.is_write();
        Fate::Meanwhile(Box::pin(async move {
            if is_write {
                other.write_lease(&node, json!({})).await;
                there.store(1, Ordering::Relaxed);
            } else if there.swap(0, Ordering::Relaxed) == 1 {
                other.delete_lease(&node).await;
            }
        }))
    });
    let alice = cluster
        .builder_on(&wire, "alice")
        .request_timeout(Some(TIME_LIMIT))
        .build()
        .unwrap();
    match alice.try_acquire(&node, &Acquire::new()).await {
        Err(Error::Contended { conflicts, .. }) if conflicts > 1 => {}
        other => panic!("not contended: {other:?}"),
    }
}

/// A holder with a request timeout of two seconds.
fn with_two_seconds(cluster: &Cluster, wire: &Wire) -> Maintenance {
    cluster
        .builder_on(wire, "alice")
        .request_timeout(Some(Duration::from_secs(2)))
        .build()
        .unwrap()
}

async fn throttled_reads_are_reported(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::planned(|_| Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(1)));
    let alice = with_two_seconds(&cluster, &wire);
    let error = alice.renew(&node, &Renew::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Error from server (TooManyRequests): something on the way says so \
         (it asks to wait 1s)"
    );
    // One retry after the second that the server asks for. After another second, the time limit has
    // passed.
    assert_eq!(wire.requests(), ["GET lease", "GET lease"]);
}

async fn a_throttled_write_waits_for_retry_after(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::first_write(Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(1)));
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.side_effects, []);
    let writes: Vec<_> = wire.passed();
    let mut writes = writes.iter().filter(|passing| passing.is_write());
    let (first, second) = (writes.next().unwrap(), writes.next().unwrap());
    let second_length = maintenance_lease::protocol::Span::seconds(1);
    assert!(second.at >= first.at.plus(second_length));
}

async fn a_write_throttled_for_longer_than_anyone_waits_is_reported(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::every_write(|| Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(120)));
    let alice = cluster.holder_on(&wire, "alice");
    let error = alice.try_acquire(&node, &Acquire::new()).await;
    match error.unwrap_err() {
        Error::Api(error) => {
            assert!(error.is_throttled());
            assert_eq!(error.status().unwrap().retry_after, Some(120));
        }
        other => panic!("not the server's word: {other}"),
    }
    assert_eq!(
        wire.passed().last().unwrap().writes,
        1,
        "nothing is repeated"
    );
}

/// A refusal by one of our policies, by this rule.
fn refused_by_policy(code: &str) -> Fate {
    let policy = "kubectl-maint-leases";
    let message = format!(
        "leases is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: \
         {code}: it is too early"
    );
    let status = json!({"kind": "Status", "reason": "Forbidden", "message": message});
    let answer = Response::builder()
        .status(StatusCode::FORBIDDEN)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(status.to_string().into_bytes()));
    Fate::MetBy(answer.unwrap())
}

async fn a_write_that_a_policy_finds_early_is_decided_again(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    for code in ["maint-clock", "maint-live-lock"] {
        let wire = Wire::first_write(refused_by_policy(code));
        let alice = cluster.holder_on(&wire, "alice");
        alice.try_acquire(&node, &Acquire::new()).await.unwrap();
        let passed = wire.passed();
        let mut writes = passed.iter().filter(|passing| passing.is_write());
        let (first, second) = (writes.next().unwrap(), writes.next().unwrap());
        let pause = Span::seconds(1);
        assert!(second.at >= first.at.plus(pause));
        // A new decision was made, and the write has a new time.
        assert_ne!(
            first.body["spec"]["renewTime"],
            second.body["spec"]["renewTime"]
        );
        alice.release(&node, &Release::new()).await.unwrap();
    }
}

/// A wait retries more often than a single attempt.
async fn a_wait_continues_after_a_policy_refused_an_early_write(cluster: Cluster) {
    for code in ["maint-clock", "maint-live-lock"] {
        let node = cluster.node(code).await;
        cluster.write_lease(&node, json!({})).await;
        let mut left = 5;
        let wire = Wire::every_write(move || {
            left -= 1;
            match left >= 0 {
                true => refused_by_policy(code),
                false => Fate::Pass,
            }
        });
        let alice = cluster.holder_on(&wire, "alice");
        let options = Acquire::new();
        let change = alice.acquire_when_free(&node, &options, |_| ()).await;
        assert_eq!(change.unwrap().done, Done::Acquired, "{code}");
        let sent = wire.writes_at();
        assert_eq!(sent.len(), 6, "{code}");
        for pair in sent.windows(2) {
            assert!(pair[1] >= pair[0].plus(Span::seconds(1)), "{code}");
        }
    }
}

async fn a_write_that_a_policy_always_refuses_is_reported(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    for (code, tries) in [("maint-clock", 4), ("maint-transitions", 1)] {
        let wire = Wire::every_write(move || refused_by_policy(code));
        let alice = cluster.holder_on(&wire, "alice");
        let error = alice.try_acquire(&node, &Acquire::new()).await;
        match error.unwrap_err() {
            Error::Api(error) => assert_eq!(error.policy_code(), Some(code)),
            other => panic!("not the policy's word: {other}"),
        }
        assert_eq!(wire.passed().last().unwrap().writes, tries, "{code}");
    }
}

async fn an_unavailable_server_is_reported(cluster: Cluster) {
    let node = cluster.node("n").await;
    let wire = Wire::planned(|_| Fate::Refused(StatusCode::SERVICE_UNAVAILABLE, Some(1)));
    let alice = with_two_seconds(&cluster, &wire);
    let error = alice.try_acquire(&node, &Acquire::new()).await;
    assert!(
        matches!(&error, Err(Error::Api(error)) if error.is(StatusCode::SERVICE_UNAVAILABLE)),
        "{error:?}"
    );
    assert_eq!(wire.passed().len(), 4, "two reads each, and nothing more");
}

async fn a_refused_write_is_reported_as_not_done(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let wire = Wire::every_write(|| Fate::Refused(StatusCode::UNPROCESSABLE_ENTITY, None));
    let alice = cluster.holder_on(&wire, "alice");
    let error = alice.try_acquire(&node, &Acquire::new()).await;
    assert!(
        matches!(&error, Err(Error::Api(error)) if error.is(StatusCode::UNPROCESSABLE_ENTITY)),
        "{error:?}"
    );
    assert_eq!(wire.passed().last().unwrap().writes, 1);
}

/// Only virtual time is exact enough to measure how long a verb takes.
#[test]
fn no_verb_outlasts_three_request_timeouts_and_one_request() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        type Fates = fn() -> Fate;
        let fates: [(&str, Fates); 4] = [
            ("swallowed", || Fate::Swallowed),
            ("reset", || Fate::Reset),
            ("throttled", || {
                Fate::Refused(StatusCode::TOO_MANY_REQUESTS, None)
            }),
            ("unavailable", || {
                Fate::Refused(StatusCode::SERVICE_UNAVAILABLE, None)
            }),
        ];
        for (name, fate) in fates {
            let node = cluster.node(name).await;
            cluster.write_lease(&node, json!({})).await;
            let wire = Wire::every_write(fate);
            let alice = cluster.holder_on(&wire, "alice");
            let begun = tokio::time::Instant::now();
            alice.try_acquire(&node, &Acquire::new()).await.unwrap_err();
            assert!(begun.elapsed() <= Duration::from_secs(40), "{name}");
            assert!(begun.elapsed() > Duration::from_secs(25), "{name}");
        }
    });
}
