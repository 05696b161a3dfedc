//! Writes that get no answer: the library finds out whether they took effect.

use std::time::Duration;

use http::StatusCode;
use maintenance_lease::protocol::{Refusal, Span};
use maintenance_lease::{
    Acquire, Change, Done, Error, Hold, LostBy, Maintenance, NodeLease, Release, Renew, SideEffect,
};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{
    Cluster, Fate, Letter, NODES, TIME_LIMIT, Wire, annotation, in_the_sandbox, refusal,
};

on_both_servers! {
    a_write_whose_answer_was_lost_was_a_success,
    a_write_behind_a_gateway_timeout_was_a_success,
    a_write_that_was_answered_with_429_was_a_success,
    a_write_that_was_answered_by_a_page_was_a_success,
    a_write_that_a_page_kept_out_is_sent_again,
    a_write_that_a_server_error_kept_out_is_sent_again,
    a_write_that_the_connection_kept_out_is_sent_again,
    a_write_that_was_kept_out_is_no_success_because_others_touched_the_lease,
    belief_counts_from_before_the_attempt_that_landed,
    a_landed_creation_is_a_success_though_the_node_cannot_be_read_again,
    a_landed_write_is_known_again_after_others_touched_the_lease,
    a_landed_release_is_known_again_after_another_acquired,
    time_is_added_once_even_after_other_writes,
    a_landed_acquisition_that_was_broken_since_is_no_success,
    a_landed_acquisition_that_was_released_by_force_is_not_made_again,
    a_write_that_was_sent_twice_on_the_way_is_a_success,
    an_acquisition_that_ended_before_it_was_answered_is_made_anew,
    an_acquisition_that_expired_and_cannot_begin_again_is_reported_as_lost,
    a_late_write_that_lands_between_two_attempts_is_a_success,
    a_late_write_that_another_overtook_lands_nowhere,
    a_late_creation_that_another_overtook_lands_nowhere,
    a_write_that_lands_after_the_client_gave_up_was_never_called_failed,
    a_release_that_lands_after_the_client_gave_up_was_never_called_failed,
    a_write_that_nobody_answers_ends_as_unknown,
    while_the_lease_cannot_be_read_nothing_is_known,
}

/// The verbs. Each is called as alice, on a Lease that it has to change.
const VERBS: [&str; 9] = [
    "acquire anew",
    "acquire",
    "reenter",
    "renew",
    "extend",
    "release",
    "force",
    "hold",
    "unhold",
];

/// Creates a node and a Lease in the state that `verb` needs.
async fn arrange(cluster: &Cluster, verb: &str) -> (String, Option<NodeLease>) {
    let node = cluster.node(&verb.replace(' ', "-")).await;
    let (alice, bob) = (cluster.holder("alice"), cluster.holder("bob"));
    match verb {
        "acquire anew" => cluster.make_namespace().await,
        "acquire" | "hold" => {
            cluster.write_lease(&node, json!({})).await;
        }
        "force" => {
            bob.try_acquire(&node, &Acquire::new()).await.unwrap();
        }
        "unhold" => {
            alice.hold(&node, &Hold::new("disk")).await.unwrap();
        }
        _ => {
            alice.try_acquire(&node, &Acquire::new()).await.unwrap();
        }
    }
    let lease = alice.get(&node).await.unwrap();
    // A renewal in the same microsecond would change nothing, not even the resource version.
    tokio::time::sleep(Duration::from_millis(1)).await;
    (node, lease)
}

async fn carry_out(
    verb: &str,
    alice: &Maintenance,
    node: &str,
    seen: Option<&NodeLease>,
) -> Result<Change, Error> {
    let acquire = Acquire::new().reason("kernel");
    match verb {
        "acquire anew" | "acquire" => alice.try_acquire(node, &acquire).await,
        "reenter" => alice.try_acquire(node, &acquire.reentry(true)).await,
        "renew" => alice.renew(node, &Renew::new()).await,
        "extend" => {
            let options = Renew::new().added(Duration::from_secs(60));
            alice.renew(node, &options).await
        }
        "release" => alice.release(node, &Release::new()).await,
        "force" => {
            alice
                .force_release(seen.expect("a Lease"), &Release::new())
                .await
        }
        "hold" => alice.hold(node, &Hold::new("disk")).await,
        "unhold" => alice.unhold(node, None).await,
        other => panic!("no verb {other}"),
    }
}

fn done_by(verb: &str) -> Done {
    match verb {
        "acquire anew" | "acquire" | "hold" => Done::Acquired,
        "reenter" | "renew" | "extend" => Done::Renewed,
        _ => Done::Released,
    }
}

/// Calls every verb on a wire that applies `fate` to the first write. Checks that the verb succeeds
/// and that its write takes effect only once.
async fn every_verb(cluster: &Cluster, fate: impl Fn() -> Fate, expected: &[SideEffect]) {
    for verb in VERBS {
        let (node, seen) = arrange(cluster, verb).await;
        let wire = Wire::first_write(fate());
        let alice = cluster.holder_on(&wire, "alice");
        let result = carry_out(verb, &alice, &node, seen.as_ref()).await;
        let change = result.unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert_eq!(change.done, done_by(verb), "{verb}");
        let side_effects: Vec<SideEffect> = change
            .side_effects
            .iter()
            .filter(|side_effect| **side_effect != SideEffect::LeaseCreated)
            .copied()
            .collect();
        assert_eq!(side_effects, expected, "{verb}");
        let stored = alice.get(&node).await.unwrap().unwrap();
        let reported = change.lease.unwrap();
        assert_eq!(reported.resource_version(), stored.resource_version());
        let transitions = seen.as_ref().map_or(0, NodeLease::transitions);
        let begun = u32::from(done_by(verb) == Done::Acquired);
        assert_eq!(stored.transitions(), transitions + begun, "{verb}");
        assert_eq!(change.deadline.is_some(), stored.holder().is_some());
    }
}

async fn a_write_whose_answer_was_lost_was_a_success(cluster: Cluster) {
    every_verb(&cluster, Fate::answer_lost, &[SideEffect::AnswerLost]).await;
}

async fn a_write_behind_a_gateway_timeout_was_a_success(cluster: Cluster) {
    let fate = || Fate::AnsweredInstead(StatusCode::GATEWAY_TIMEOUT);
    every_verb(&cluster, fate, &[SideEffect::AnswerLost]).await;
}

/// A proxy has sent the write twice, and only the copy was refused.
async fn a_write_that_was_answered_with_429_was_a_success(cluster: Cluster) {
    let fate = || Fate::AnsweredInstead(StatusCode::TOO_MANY_REQUESTS);
    every_verb(&cluster, fate, &[SideEffect::AnswerLost]).await;
}

async fn a_write_that_was_answered_by_a_page_was_a_success(cluster: Cluster) {
    every_verb(&cluster, || Fate::AnsweredByPage, &[SideEffect::AnswerLost]).await;
}

async fn a_write_that_a_page_kept_out_is_sent_again(cluster: Cluster) {
    every_verb(&cluster, || Fate::MetByPage, &[]).await;
}

async fn a_write_that_a_server_error_kept_out_is_sent_again(cluster: Cluster) {
    let fate = || Fate::Refused(StatusCode::INTERNAL_SERVER_ERROR, None);
    every_verb(&cluster, fate, &[]).await;
}

async fn a_write_that_the_connection_kept_out_is_sent_again(cluster: Cluster) {
    every_verb(&cluster, || Fate::Reset, &[]).await;
}

/// The Lease changes, and the first write never arrives. So a new decision is made, and a new write
/// is sent.
async fn a_write_that_was_kept_out_is_no_success_because_others_touched_the_lease(
    cluster: Cluster,
) {
    for verb in VERBS.into_iter().filter(|verb| *verb != "acquire anew") {
        let (node, seen) = arrange(&cluster, verb).await;
        let (other, touched) = (cluster.clone(), node.clone());
        let mut touch = Some(async move { other.touch_lease(&touched).await });
        let wire = Wire::planned(move |passing| match (passing.writes, passing.is_write()) {
            (1, true) => Fate::Reset,
            (1, false) => Fate::Meanwhile(Box::pin(touch.take().expect("one read"))),
            _ => Fate::Pass,
        });
        let alice = cluster.holder_on(&wire, "alice");
        let change = carry_out(verb, &alice, &node, seen.as_ref()).await.unwrap();
        assert_eq!(change.done, done_by(verb), "{verb}");
        assert_eq!(change.side_effects, [], "{verb}");
        assert_eq!(wire.passed().last().unwrap().writes, 2, "{verb}");
        let stored = alice.get(&node).await.unwrap().unwrap();
        let reported = change.lease.unwrap();
        assert_eq!(reported.resource_version(), stored.resource_version());
        assert_eq!(reported.renewed(), stored.renewed(), "{verb}");
    }
}

/// The outcome of the write is settled by another read, or by sending it again.
async fn belief_counts_from_before_the_attempt_that_landed(cluster: Cluster) {
    let time_passes = async { tokio::time::sleep(Duration::from_millis(50)).await };
    let landed = Wire::first_write(Fate::AnswerLost(Box::pin(time_passes)));
    let kept_out = Wire::first_write(Fate::Reset);
    for (name, wire) in [("landed", landed), ("kept-out", kept_out)] {
        let node = cluster.node(name).await;
        cluster.write_lease(&node, json!({})).await;
        let alice = cluster.holder_on(&wire, "alice");
        let before = cluster.env.boot();
        let options = Acquire::new().duration(Duration::from_secs(60));
        let change = alice.try_acquire(&node, &options).await.unwrap();
        assert_eq!(
            change.side_effects.contains(&SideEffect::AnswerLost),
            name == "landed"
        );
        let deadline = change.deadline.unwrap();
        let minute = Span::seconds(60);
        let sent = wire.writes_at();
        // The `renewTime` in the Lease shows which write took effect.
        let landed = if name == "landed" { sent[0] } else { sent[1] };
        assert!(deadline >= before.plus(minute), "{name}");
        assert!(deadline <= landed.plus(minute), "{name}");
    }
}

async fn a_landed_creation_is_a_success_though_the_node_cannot_be_read_again(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire anew").await;
    let wire = Wire::planned(|passing| match passing.what().as_str() {
        "POST lease" => Fate::answer_lost(),
        "GET node" if passing.writes > 0 => Fate::Reset,
        _ => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    assert_eq!(change.done, Done::Acquired);
    assert!(change.side_effects.contains(&SideEffect::AnswerLost));
}

async fn a_landed_write_is_known_again_after_others_touched_the_lease(cluster: Cluster) {
    for verb in VERBS {
        let (node, seen) = arrange(&cluster, verb).await;
        let (other, touched) = (cluster.clone(), node.clone());
        let wire = Wire::first_write(Fate::AnswerLost(Box::pin(async move {
            other.touch_lease(&touched).await;
        })));
        let alice = cluster.holder_on(&wire, "alice");
        let change = carry_out(verb, &alice, &node, seen.as_ref()).await.unwrap();
        assert_eq!(change.done, done_by(verb), "{verb}");
        assert_eq!(change.side_effects, [SideEffect::AnswerLost], "{verb}");
    }
}

async fn a_landed_release_is_known_again_after_another_acquired(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "release").await;
    let (bob, taken) = (cluster.holder("bob"), node.clone());
    let wire = Wire::first_write(Fate::AnswerLost(Box::pin(async move {
        bob.try_acquire(&taken, &Acquire::new()).await.unwrap();
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(change.done, Done::Released);
    assert_eq!(holder(&cluster, &node).await, "bob");
}

/// After a lost answer or a repeated write, another renewal of the same lock hides the first one.
async fn time_is_added_once_even_after_other_writes(cluster: Cluster) {
    for name in ["lost", "repeated"] {
        let node = cluster.node(name).await;
        let first = cluster.holder("alice");
        let acquire = Acquire::new().duration(Duration::from_secs(600));
        let acquired = first.try_acquire(&node, &acquire).await.unwrap();
        let minutes = |minutes: u64| Renew::new().added(Duration::from_secs(60 * minutes));

        let renewed = node.clone();
        let mut on_top = Some(async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            first.renew(&renewed, &minutes(1)).await.unwrap();
        });
        let wire = Wire::planned(move |passing| match (name, passing.is_write()) {
            _ if passing.writes != 1 => Fate::Pass,
            ("lost", true) => Fate::AnswerLost(Box::pin(on_top.take().expect("one write"))),
            ("repeated", true) => Fate::Twice,
            (_, true) => unreachable!(),
            (_, false) => match on_top.take() {
                Some(on_top) => Fate::Meanwhile(Box::pin(on_top)),
                None => Fate::Pass,
            },
        });
        let alice = cluster.holder_on(&wire, "alice");
        let extended = alice.renew(&node, &minutes(5)).await.unwrap();
        assert_eq!(extended.done, Done::Renewed, "{name}");
        let end = |change: &Change| change.lease.as_ref().unwrap().end().unwrap();
        let added = (end(&extended) - end(&acquired)).ceil_seconds();
        // Durations are whole seconds, rounded up.
        assert!((360..=363).contains(&added), "{name}: {added} s");
    }
}

async fn a_landed_acquisition_that_was_broken_since_is_no_success(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire").await;
    let (admin, taken) = (cluster.holder("admin"), node.clone());
    let wire = Wire::first_write(Fate::AnswerLost(Box::pin(async move {
        let confirmed = admin.get(&taken).await.unwrap();
        let hold = Hold::new("fire").take_over(confirmed);
        admin.hold(&taken, &hold).await.unwrap();
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let Err(Error::Lost(lost)) = alice.try_acquire(&node, &Acquire::new()).await else {
        panic!("it was broken");
    };
    assert_eq!(lost.by, LostBy::TakeOver("kubeadm:admin".to_owned()));
    assert_eq!(lost.lease.as_ref().unwrap().last_holder(), Some("alice"));
}

async fn a_landed_acquisition_that_was_released_by_force_is_not_made_again(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire").await;
    let (bob, broken) = (cluster.holder("bob"), node.clone());
    let wire = Wire::first_write(Fate::AnswerLost(Box::pin(async move {
        let confirmed = bob.get(&broken).await.unwrap().unwrap();
        bob.force_release(&confirmed, &Release::new())
            .await
            .unwrap();
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let Err(Error::Lost(lost)) = alice.try_acquire(&node, &Acquire::new()).await else {
        panic!("it was broken");
    };
    assert_eq!(lost.by, LostBy::Release);
    assert_eq!(lost.lease.as_ref().unwrap().released_by(), Some("bob"));
    assert_eq!(
        wire.passed().last().unwrap().writes,
        1,
        "it was not repeated"
    );
}

/// A proxy sends a write twice, and returns the answer to the second one.
async fn a_write_that_was_sent_twice_on_the_way_is_a_success(cluster: Cluster) {
    for verb in VERBS {
        let (node, seen) = arrange(&cluster, verb).await;
        let wire = Wire::first_write(Fate::Twice);
        let alice = cluster.holder_on(&wire, "alice");
        let change = carry_out(verb, &alice, &node, seen.as_ref()).await;
        let change = change.unwrap_or_else(|error| panic!("{verb}: {error}"));
        let expected = match done_by(verb) {
            Done::Released => Done::AlreadyFree,
            done => done,
        };
        assert_eq!(change.done, expected, "{verb}");
    }
}

/// If the lock has expired before the answer comes, the acquisition did not succeed.
async fn an_acquisition_that_ended_before_it_was_answered_is_made_anew(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire").await;
    let time_passes = async { tokio::time::sleep(Duration::from_millis(8_500)).await };
    let wire = Wire::first_write(Fate::AnswerLost(Box::pin(time_passes)));
    let alice = cluster.holder_on(&wire, "alice");
    let options = Acquire::new().duration(Duration::from_secs(12));
    let change = alice.try_acquire(&node, &options).await.unwrap();
    assert_eq!(change.done, Done::Acquired);
    let left = change.deadline.unwrap().since(cluster.env.boot());
    assert!(left >= Span::seconds(4), "{left:?} left");
    assert_eq!(wire.passed().last().unwrap().writes, 2, "it was renewed");
    let stored = alice.get(&node).await.unwrap().unwrap();
    assert_eq!(
        stored.lock_id(),
        change.lock_id(),
        "it is still that acquisition"
    );
}

/// The Node is deleted before the answer to the acquisition is lost, and a finalizer keeps it.
async fn an_acquisition_that_expired_and_cannot_begin_again_is_reported_as_lost(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire anew").await;
    let path = format!("{NODES}/{node}");
    let finalizers = json!({"metadata": {"finalizers": ["example.com/drain"]}});
    cluster.patch(&path, finalizers).await;
    let (other, deleted) = (cluster.clone(), path.clone());
    let wire = Wire::first_write(Fate::AnswerLost(Box::pin(async move {
        other.delete(&deleted).await;
        tokio::time::sleep(Duration::from_millis(4_500)).await;
    })));
    let alice = cluster.holder_on(&wire, "alice");
    let options = Acquire::new().duration(Duration::from_secs(1));
    match alice.try_acquire(&node, &options).await {
        Err(Error::Lost(lost)) => {
            assert_eq!(lost.by, LostBy::Expiry);
            let told = lost.to_string();
            assert!(told.ends_with("is being deleted"), "{told}");
        }
        other => panic!("{other:?}"),
    }
    cluster
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

async fn a_late_write_that_lands_between_two_attempts_is_a_success(cluster: Cluster) {
    for verb in VERBS {
        let (node, seen) = arrange(&cluster, verb).await;
        let (letter, delayed) = Fate::delayed();
        let delivered = async move {
            assert!(letter.deliver().await.is_success());
        };
        let mut fates = [Fate::Meanwhile(Box::pin(delivered)), delayed].into_iter();
        let wire = Wire::every_write(move || fates.next_back().unwrap_or(Fate::Pass));
        let alice = cluster.holder_on(&wire, "alice");
        let change = carry_out(verb, &alice, &node, seen.as_ref()).await;
        let change = change.unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert_eq!(change.done, done_by(verb), "{verb}");
        assert_eq!(change.side_effects, [SideEffect::AnswerLost], "{verb}");
        let bodies: Vec<Value> = wire.passed().into_iter().map(|sent| sent.body).collect();
        let writes: Vec<&Value> = bodies.iter().filter(|body| !body.is_null()).collect();
        assert_eq!(writes.len(), 2, "{verb}");
        let but_for_its_time = |body: &Value| {
            let mut body = body.clone();
            for time in ["acquireTime", "renewTime"] {
                body["spec"][time] = Value::Null;
            }
            let annotations = &mut body["metadata"]["annotations"];
            annotations["kubectl-maint.dev/released-at"] = Value::Null;
            // The history contains seconds.
            let history = &mut annotations["kubectl-maint.dev/history"];
            if let Some(entries) = history.as_str() {
                *history = entries.replace(|c: char| c.is_ascii_digit(), "").into();
            }
            body
        };
        let [first, second] = [writes[0], writes[1]].map(but_for_its_time);
        assert_eq!(first, second, "{verb}: the same write");
    }
}

async fn a_late_write_that_another_overtook_lands_nowhere(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire").await;
    assert_overtaken(&cluster, &node).await;
}

async fn a_late_creation_that_another_overtook_lands_nowhere(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire anew").await;
    assert_overtaken(&cluster, &node).await;
}

/// The first write of alice is delayed, and bob acquires the lock before her second one.
async fn assert_overtaken(cluster: &Cluster, node: &str) {
    let (letter, delayed) = Fate::delayed();
    let (bob, taken) = (cluster.holder("bob"), node.to_owned());
    let overtaking = async move {
        bob.try_acquire(&taken, &Acquire::new()).await.unwrap();
    };
    let mut fates = [Fate::Meanwhile(Box::pin(overtaking)), delayed].into_iter();
    let wire = Wire::every_write(move || fates.next_back().unwrap_or(Fate::Pass));
    let alice = cluster.holder_on(&wire, "alice");
    let refused = refusal(alice.try_acquire(node, &Acquire::new()).await);
    assert_eq!(refused.refusal, Refusal::Held);
    assert_eq!(refused.lease.unwrap().holder(), Some("bob"));
    assert_eq!(letter.deliver().await, StatusCode::CONFLICT);
    assert_eq!(holder(cluster, node).await, "bob");
}

async fn a_write_that_lands_after_the_client_gave_up_was_never_called_failed(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire").await;
    let (letter, error) = give_up(&cluster, "acquire", &node).await;
    assert_unknown(&error, &node, "acquired");
    assert_eq!(holder(&cluster, &node).await, "");
    assert_eq!(letter.deliver().await, StatusCode::OK);
    assert_eq!(holder(&cluster, &node).await, "alice");
    // The caller can see that, and release the lock.
    let alice = cluster.holder("alice");
    alice.release(&node, &Release::new()).await.unwrap();
}

async fn a_release_that_lands_after_the_client_gave_up_was_never_called_failed(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "release").await;
    let (letter, error) = give_up(&cluster, "release", &node).await;
    assert_unknown(&error, &node, "released");
    assert_eq!(letter.deliver().await, StatusCode::OK);
    let lease = cluster.lease(&node).await;
    assert_eq!(lease["spec"]["holderIdentity"], "");
    assert_eq!(annotation(&lease, "last-holder"), "alice");
}

/// The first write may still take effect: to refuse the second would say that nothing happens.
#[test]
fn a_copy_is_not_refused_because_the_lock_has_expired() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let node = cluster.node("n").await;
        let cordon = json!({"spec": {"unschedulable": true}});
        cluster.patch(&format!("{NODES}/{node}"), cordon).await;
        let short = Acquire::new().duration(Duration::from_secs(10));
        let held = cluster.holder("alice").try_acquire(&node, &short).await;
        let (letter, delayed) = Fate::delayed();
        let mut delayed = Some(delayed);
        let wire = Wire::every_write(move || delayed.take().unwrap_or(Fate::Reset));
        let alice = cluster.holder_on(&wire, "alice");
        let disk = Hold::new("disk").refuse_unfinished([]);
        let error = alice.hold(&node, &disk).await.unwrap_err();
        assert_unknown(&error, &node, "put on hold");
        let until = held.unwrap().until().expect("it is locked");
        assert!(alice.server_time().now().earliest > until);
        assert_eq!(letter.deliver().await, StatusCode::OK);
        assert_eq!(holder(&cluster, &node).await, "kubeadm:alice");
    });
}

/// Calls `verb` while no write succeeds. The first write is only delayed.
async fn give_up(cluster: &Cluster, verb: &str, node: &str) -> (Letter, Error) {
    let (letter, delayed) = Fate::delayed();
    let mut delayed = Some(delayed);
    let wire = Wire::every_write(move || delayed.take().unwrap_or(Fate::Reset));
    let alice = cluster
        .builder_on(&wire, "alice")
        .request_timeout(Some(TIME_LIMIT))
        .build()
        .unwrap();
    let result = carry_out(verb, &alice, node, None).await;
    (letter, result.unwrap_err())
}

async fn a_write_that_nobody_answers_ends_as_unknown(cluster: Cluster) {
    let (node, seen) = arrange(&cluster, "renew").await;
    let wire = Wire::every_write(|| Fate::Swallowed);
    let alice = cluster
        .builder_on(&wire, "alice")
        .request_timeout(Some(TIME_LIMIT))
        .build()
        .unwrap();
    let result = carry_out("renew", &alice, &node, seen.as_ref()).await;
    assert_unknown(&result.unwrap_err(), &node, "renewed");
}

async fn while_the_lease_cannot_be_read_nothing_is_known(cluster: Cluster) {
    let (node, _) = arrange(&cluster, "acquire").await;
    // The first write takes effect, and all later requests are refused.
    let wire = Wire::planned(|passing| match passing.writes {
        0 => Fate::Pass,
        1 if passing.is_write() => Fate::answer_lost(),
        _ => Fate::Refused(StatusCode::SERVICE_UNAVAILABLE, None),
    });
    let alice = cluster
        .builder_on(&wire, "alice")
        .request_timeout(Some(TIME_LIMIT))
        .build()
        .unwrap();
    let error = alice.try_acquire(&node, &Acquire::new()).await.unwrap_err();
    assert_unknown(&error, &node, "acquired");
    assert_eq!(holder(&cluster, &node).await, "alice");
}

fn assert_unknown(error: &Error, node: &str, participle: &str) {
    let Error::Unknown {
        node: named,
        intent,
        ..
    } = error
    else {
        panic!("not unknown: {error}");
    };
    assert_eq!((named.as_str(), *intent), (node, participle));
    let text = error.to_string();
    assert!(
        text.contains(": the write may still take effect ("),
        "{text}"
    );
}

async fn holder(cluster: &Cluster, node: &str) -> String {
    let lease = cluster.lease(node).await;
    let holder = lease["spec"]["holderIdentity"].as_str();
    holder.unwrap_or_default().to_owned()
}

#[test]
fn writes_that_are_always_too_slow_fail() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let (node, _) = arrange(&cluster, "acquire").await;
        let wire = Wire::every_write(|| {
            Fate::Meanwhile(Box::pin(tokio::time::sleep(Duration::from_secs(5))))
        });
        let alice = cluster.holder_on(&wire, "alice");
        let options = Acquire::new().duration(Duration::from_secs(6));
        let begun = tokio::time::Instant::now();
        let result = alice.try_acquire(&node, &options).await;
        assert!(matches!(result, Err(Error::Unknown { .. })), "{result:?}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(
            alice.has_open_write(&node),
            "it is stored, and reported as unknown"
        );
    });
}
