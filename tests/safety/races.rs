//! Changes between the report and the deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Fixture, fixture};
use crate::support::{Kept, LEASES, Proxy, Run, Running, Treatment, ago, holder_of};

fn deletes_a_pod(method: &Method, path: &str) -> bool {
    *method == Method::DELETE && path.contains("/pods/")
}

/// A proxy that keeps the requests that delete pods.
fn proxy(fixture: &Fixture) -> Proxy {
    fixture.cluster.proxy_for(Treatment::Keep, deletes_a_pod)
}

/// A proxy that keeps the requests with the method `kept`.
fn keeping(fixture: &Fixture, kept: Method) -> Proxy {
    fixture
        .cluster
        .proxy_for(Treatment::Keep, move |method, _| *method == kept)
}

/// A proxy that keeps only the first request with the method `kept`.
fn keeping_first(fixture: &Fixture, kept: Method) -> Proxy {
    let met = AtomicUsize::new(0);
    fixture
        .cluster
        .proxy_for(Treatment::Keep, move |method, _| {
            *method == kept && met.fetch_add(1, Ordering::SeqCst) == 0
        })
}

/// Starts to delete `pod`, and waits for the first request that `proxy` keeps.
fn held_up(proxy: &Proxy, fixture: &Fixture, pod: &str, words: &[&str]) -> (Running, Kept) {
    proxy.holds_up(fixture.force_delete(pod, words))
}

/// Deletes `pod` with all risks accepted. Calls `meanwhile` before the DELETE request is forwarded.
fn deleting(fixture: &Fixture, pod: &str, meanwhile: impl FnOnce()) -> Run {
    let proxy = proxy(fixture);
    let words = ["--accept-risk", "-m", "why"];
    let (run, kept) = held_up(&proxy, fixture, pod, &words);
    meanwhile();
    kept.passes();
    run.ends()
}

/// Changes a label of `pod` that no check reads.
fn touch(fixture: &Fixture, pod: &str) {
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    fixture.cluster.patch(&fixture.pod_path(pod), &label);
}

#[test]
fn a_pod_that_was_replaced_is_not_deleted() {
    fixture("swapped", |fixture| {
        fixture.harmless_pod("web-1");
        let gone = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let run = deleting(fixture, "web-1", || {
            fixture
                .cluster
                .try_send("DELETE", &fixture.pod_path("web-1"), Some(&gone))
                .expect("it goes");
            fixture.make_pod("web-1", &json!({}));
        });
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr.contains(
                "BLOCKER  target            it was replaced: this is a new one with the same name"
            ),
            "{run}"
        );
        assert!(run.stderr.contains("nothing was deleted"), "{run}");
        assert!(fixture.is_there("web-1"));
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
    });
}

/// Starts to delete `web-1` to `web-3`, which have no risks, and waits for the deletion of `web-2`.
pub(crate) fn at_the_second(fixture: &Fixture, words: &[&str]) -> (Proxy, Running, Kept) {
    let owner = fixture.replica_set("web");
    for name in ["web-1", "web-2", "web-3"] {
        fixture.ended_pod(name, Some(&owner), &json!({}));
    }
    let proxy = fixture.cluster.proxy_for(Treatment::Keep, |method, path| {
        deletes_a_pod(method, path) && path.contains("/pods/web-2")
    });
    let pods = ["pod/web-1", "pod/web-2", "pod/web-3"];
    let maint = fixture
        .cluster
        .maint(["force-delete", "-n", &fixture.namespace]);
    let maint = maint.args(pods).args(["-m", "why"]);
    let (run, kept) = proxy.holds_up(maint.args(words));
    (proxy, run, kept)
}

/// The data about the other pods is just as old.
#[test]
fn a_pod_that_changed_ends_the_deletion_of_the_others() {
    fixture("touched", |fixture| {
        let (_proxy, run, kept) = at_the_second(fixture, &["--accept-risk=none"]);
        touch(fixture, "web-2");
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let message = format!(
            "error: pod/web-2 changed after the check; nothing more was deleted\n\
             hint: to check again and delete: `kubectl maint force-delete pod/web-2 pod/web-3 -n {} \
             --accept-risk=none -m why`\n\
             error: not deleted: pod/web-2, pod/web-3\n",
            fixture.namespace
        );
        assert!(run.stderr.contains(&message), "{run}");
        assert!(run.stdout.ends_with("pod/web-1 force-deleted\n"), "{run}");
        assert!(fixture.is_there("web-2") && fixture.is_there("web-3"));
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
    });
}

#[test]
fn a_pod_that_went_by_itself_leaves_the_others_to_be_deleted() {
    fixture("others", |fixture| {
        let (_proxy, run, kept) = at_the_second(fixture, &["--accept-risk=none"]);
        let gone = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let path = fixture.pod_path("web-2");
        let went = fixture.cluster.try_send("DELETE", &path, Some(&gone));
        went.expect("it goes");
        assert_eq!(kept.passes(), 404);
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        let message = "pod/web-2 was already gone\npod/web-3 force-deleted\n";
        assert!(run.stdout.ends_with(message), "{run}");
    });
}

/// The kubelet's clock is so far behind that its heartbeat looks old.
#[test]
fn a_heartbeat_ends_the_deletion_even_with_a_wrong_clock() {
    fixture("behind", |fixture| {
        let (_proxy, run, kept) = at_the_second(fixture, &["--accept-risk=none"]);
        let heartbeat = format!(
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{}",
            fixture.node
        );
        let renewed = json!({"spec": {"renewTime": ago(60)}});
        fixture.cluster.patch(&heartbeat, &renewed);
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let message = "error: refused: node-alive; nothing more was deleted\n";
        assert!(run.stderr.contains(message), "{run}");
        assert!(run.stderr.contains("(last heartbeat 0s ago, "), "{run}");
        let left = "error: not deleted: pod/web-3\n";
        assert!(run.stderr.contains(left), "{run}");
        let deleted = "pod/web-1 force-deleted\npod/web-2 force-deleted\n";
        assert!(run.stdout.ends_with(deleted), "{run}");
        assert!(!fixture.is_there("web-2") && fixture.is_there("web-3"));
    });
}

#[test]
fn a_node_that_changed_is_looked_at_again_before_it_goes() {
    fixture("returned", |fixture| {
        let path = format!("/api/v1/nodes/{}", fixture.node);
        let is_there = || fixture.cluster.try_send("GET", &path, None).is_ok();
        let proxy = fixture.cluster.proxy_for(Treatment::Keep, |method, path| {
            *method == Method::DELETE && path.contains("/nodes/")
        });
        let deleting = |more: &[&str]| {
            let node = format!("node/{}", fixture.node);
            let words = ["force-delete", &node, "--accept-risk", "-m", "why"];
            proxy.holds_up(fixture.cluster.maint(words).args(more))
        };
        let touch = |text: &str| {
            let label = json!({"metadata": {"labels": {"touched": text}}});
            fixture.cluster.patch(&path, &label);
        };

        // The kubelet is back.
        let (run, kept) = deleting(&[]);
        fixture.heartbeat();
        touch("returned");
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr
                .contains("refused: node-alive; nothing was deleted"),
            "{run}"
        );
        assert!(is_there());

        // With the override for a live node, the Node is deleted even if it changes.
        let (run, kept) = deleting(&["--override=node-alive"]);
        touch("alive");
        assert_eq!(kept.passes(), 200);
        assert_eq!(run.ends().code, 0);
        assert!(!is_there());
    });
}

#[test]
fn a_new_risk_was_not_confirmed() {
    fixture("appeared", |fixture| {
        fixture.ended_member(3, 2);
        let lose_one = || {
            let path = fixture.at("/apis/apps/v1", "statefulsets/web/status");
            let status = json!({"status": {"replicas": 3, "readyReplicas": 1}});
            fixture.cluster.patch(&path, &status);
            touch(fixture, "web-0");
        };
        let run = deleting(fixture, "web-0", lose_one);
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr
                .contains("risks not accepted: quorum; nothing was deleted"),
            "{run}"
        );
        assert!(fixture.is_there("web-0"));
    });
}

#[test]
fn a_deletion_whose_answer_was_lost_is_the_success_that_it_was() {
    fixture("lost", |fixture| {
        fixture.harmless_pod("web-1");
        let proxy = fixture
            .cluster
            .proxy_for(Treatment::LoseAnswer, deletes_a_pod);
        let words = ["--accept-risk", "-m", "why"];
        let run = fixture
            .force_delete("web-1", &words)
            .kubeconfig(&proxy.kubeconfig)
            .succeeds();
        assert!(run.stdout.contains("pod/web-1 force-deleted"), "{run}");
        assert!(!fixture.is_there("web-1"));
    });
}

#[test]
fn killed_under_its_lock_it_has_deleted_nothing_and_keeps_others_away_for_a_while() {
    fixture("killed", |fixture| {
        fixture.harmless_pod("web-1");
        let proxy = proxy(fixture);
        let words = ["--accept-risk=none", "-m", "why"];
        let (run, kept) = held_up(&proxy, fixture, "web-1", &words);
        run.is_sent(Signal::KILL);
        run.ends_killed();
        drop(kept);
        assert!(fixture.is_there("web-1"));
        let holder = || holder_of(&fixture.cluster, &fixture.node);
        let held_by = holder().expect("it is held");
        assert!(
            held_by.starts_with("alice@bastion/force-delete-"),
            "{held_by}"
        );
        // The lock expires.
        let path = format!("{LEASES}/{}", fixture.node);
        let passed = json!({"spec": {"renewTime": ago(600)}});
        fixture.cluster.patch(&path, &passed);
        let words = ["--accept-risk=lease-expired", "-m", "why"];
        let again = fixture.force_delete("web-1", &words).holder("bob@laptop");
        again.succeeds();
        assert!(!fixture.is_there("web-1"));
        assert_eq!(holder(), None);
    });
}

#[test]
fn an_own_lease_that_ends_after_the_report_stops_it() {
    fixture("lapsed", |fixture| {
        fixture.harmless_pod("web-1");
        let own = |seconds| {
            json!({
                "holderIdentity": "alice@bastion", "leaseDurationSeconds": 1800,
                "acquireTime": ago(seconds), "renewTime": ago(seconds),
            })
        };
        fixture.cluster.lease(&fixture.node, &own(60));
        let looks = AtomicUsize::new(0);
        let proxy = fixture
            .cluster
            .proxy_for(Treatment::Keep, move |method, path| {
                let is_look = *method == Method::GET && path.contains("/pods/web-1");
                is_look && looks.fetch_add(1, Ordering::Relaxed) == 1
            });
        let (run, kept) = held_up(
            &proxy,
            fixture,
            "web-1",
            &["--accept-risk=none", "-m", "why"],
        );
        let path = format!("{LEASES}/{}", fixture.node);
        fixture.cluster.patch(&path, &json!({"spec": own(3600)}));
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let message = format!(
            "refused: lease: you no longer have the lock on node/{}; nothing was deleted",
            fixture.node
        );
        assert!(run.stderr.contains(&message), "{run}");
        assert!(fixture.is_there("web-1"));
    });
}

#[test]
fn a_deletion_that_comes_out_after_an_interrupt_leaves_its_evidence_and_is_the_last() {
    fixture("last", |fixture| {
        let pods = ["web-1", "web-2"];
        for pod in pods {
            fixture.harmless_pod(pod);
        }
        let proxy = proxy(fixture);
        let pods = pods.map(|pod| format!("pod/{pod}"));
        let deletion =
            fixture
                .cluster
                .maint(["force-delete", &pods[0], &pods[1], "-n", &fixture.namespace]);
        let (run, kept) = proxy.holds_up(deletion.args(["--accept-risk", "-m", "why"]));
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let message = "pod/web-1 force-deleted\n";
        assert!(run.stdout.ends_with(message), "{run}");
        assert!(!fixture.is_there("web-1") && fixture.is_there("web-2"));
        let events = fixture.events();
        assert_eq!(events.len(), 1, "{events:#?}");
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
    });
}

#[test]
fn an_interrupted_deletion_may_still_take_effect() {
    fixture("interrupted", |fixture| {
        fixture.harmless_pod("web-1");
        let proxy = proxy(fixture);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, fixture, "web-1", &words);
        run.interrupt();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let line = "unknown whether pod/web-1 was force-deleted: the request may still take effect (interrupted)";
        assert!(run.stderr.contains(line), "{run}");
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        drop(kept);
        assert!(fixture.is_there("web-1"));
    });
}

/// The server gets the request, and then stops answering.
#[test]
fn a_deletion_that_gets_no_answer_may_still_take_effect() {
    fixture("no-answer", |fixture| {
        fixture.harmless_pod("web-1");
        let deleting = Arc::new(AtomicBool::new(false));
        let is_hit = deleting.clone();
        let proxy = fixture.cluster.proxy(move |method, path| {
            if *method == Method::DELETE {
                is_hit.store(true, Ordering::SeqCst);
                return Treatment::Keep;
            }
            match is_hit.load(Ordering::SeqCst) && path.contains("/pods/") {
                true => Treatment::Answer(503, None),
                false => Treatment::Pass,
            }
        });
        let words = ["--accept-risk", "-m", "why", "--request-timeout=5s"];
        let (run, kept) = held_up(&proxy, fixture, "web-1", &words);
        let run = run.ends();
        assert_eq!(run.code, 1, "{run}");
        assert!(deleting.load(Ordering::SeqCst));
        let line = "error: unknown whether pod/web-1 was force-deleted: the request may still take effect (";
        assert!(run.stderr.contains(line), "{run}");
        let hint = format!(
            "hint: check with `kubectl get pod/web-1 -n {}`",
            fixture.namespace
        );
        assert!(run.stderr.contains(&hint), "{run}");
        let notes = notes(fixture);
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(
            note.contains("tried to force-delete pod/web-1 (uid "),
            "{note}"
        );
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        assert!(fixture.is_there("web-1"));
        assert_eq!(kept.passes(), 200);
        assert!(!fixture.is_there("web-1"));
    });
}

/// If a request got no answer and can no longer take effect, it counts as refused.
#[test]
fn a_deletion_without_an_answer_is_left_at_another_version() {
    fixture("outdated", |fixture| {
        fixture.harmless_pod("web-1");
        let proxy = keeping_first(fixture, Method::DELETE);
        let words = ["--accept-risk", "-m", "why", "--request-timeout=5s"];
        let (run, kept) = held_up(&proxy, fixture, "web-1", &words);
        touch(fixture, "web-1");
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let message = "error: pod/web-1 changed after the check; nothing was deleted\n";
        assert!(run.stderr.contains(message), "{run}");
        assert!(fixture.is_there("web-1"));
        drop(kept);
    });
}

#[test]
fn a_lock_that_is_acquired_after_an_interrupt_is_released() {
    fixture("late", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.cluster.released(&fixture.node);
        let proxy = keeping_first(fixture, Method::PATCH);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, fixture, "web-1", &words);
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        assert!(fixture.is_there("web-1"));
    });
}

#[test]
fn an_interrupted_lock_may_still_take_effect() {
    fixture("locking", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.cluster.released(&fixture.node);
        let proxy = keeping(fixture, Method::PATCH);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, fixture, "web-1", &words);
        run.interrupt();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let line = format!(
            "interrupted: node/{} may stay locked for up to 300s; nothing was deleted",
            fixture.node
        );
        assert!(run.stderr.contains(&line), "{run}");
        assert!(fixture.is_there("web-1"));
        drop(kept);
    });
}

/// After the deletion, the server stops answering. The command must print what was deleted before it waits for any
/// later answer.
#[test]
fn after_an_interrupt_the_outcome_comes_before_the_locks_go_back() {
    fixture("hanging", |fixture| {
        fixture.harmless_pod("web-1");
        let proxy = fixture.cluster.proxy_for(Treatment::Keep, |method, path| {
            let is_release = *method == Method::PATCH && path.contains("/leases/");
            deletes_a_pod(method, path) || is_release
        });
        let words = ["--accept-risk", "-m", "why"];
        let (mut run, deletion) = held_up(&proxy, fixture, "web-1", &words);
        run.interrupt();
        assert_eq!(deletion.passes(), 200);
        let message = "pod/web-1 force-deleted";
        loop {
            let line = run.line();
            assert!(!line.is_empty(), "it never message");
            if line == message {
                break;
            }
        }
        // Only now is the release sent.
        let release = proxy.kept();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let line = format!(
            "unknown whether the lock on node/{} was released",
            fixture.node
        );
        assert!(run.stderr.contains(&line), "{run}");
        assert!(!fixture.is_there("web-1"));
        drop(release);
    });
}

/// The notes of the Events in the namespace.
fn notes(fixture: &Fixture) -> Vec<String> {
    let events = fixture.events();
    let notes = events.iter().filter_map(|event| event["note"].as_str());
    notes.map(ToOwned::to_owned).collect()
}
