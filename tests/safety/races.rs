//! What happens between the report and the deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use rustix::process::Signal;
use serde_json::json;

use crate::scene::{Scene, scene};
use crate::support::{Kept, LEASES, Proxy, Run, Running, Treatment, ago, holder_of};

fn deletes_a_pod(method: &Method, path: &str) -> bool {
    *method == Method::DELETE && path.contains("/pods/")
}

/// A proxy that keeps the requests to delete.
fn proxy(scene: &Scene) -> Proxy {
    scene.cluster.proxy_for(Treatment::Keep, deletes_a_pod)
}

/// A proxy that keeps the requests by `kept`.
fn keeping(scene: &Scene, kept: Method) -> Proxy {
    scene
        .cluster
        .proxy_for(Treatment::Keep, move |method, _| *method == kept)
}

/// A proxy that keeps the first request by `kept` alone.
fn keeping_first(scene: &Scene, kept: Method) -> Proxy {
    let met = AtomicUsize::new(0);
    scene.cluster.proxy_for(Treatment::Keep, move |method, _| {
        *method == kept && met.fetch_add(1, Ordering::SeqCst) == 0
    })
}

/// Starts to delete `pod`, up to the first request that `proxy` keeps.
fn held_up(proxy: &Proxy, scene: &Scene, pod: &str, words: &[&str]) -> (Running, Kept) {
    proxy.holds_up(scene.force_delete(pod, words))
}

/// Deletes `pod` with everything confirmed, while `meanwhile` happens before the first request to
/// delete arrives; later ones arrive at once.
fn deleting(scene: &Scene, pod: &str, meanwhile: impl FnOnce(), later: usize) -> Run {
    let proxy = proxy(scene);
    let words = ["--accept-risk", "-m", "why", "--timeout=0"];
    let (run, kept) = held_up(&proxy, scene, pod, &words);
    meanwhile();
    kept.passes();
    for _ in 0..later {
        proxy.kept().passes();
    }
    run.ends()
}

/// Has something about `pod` changed that nobody looks at.
fn touch(scene: &Scene, pod: &str) {
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    scene.cluster.patch(&scene.pod_path(pod), &label);
}

#[test]
fn a_pod_that_was_replaced_is_not_deleted() {
    scene("swapped", |scene| {
        scene.harmless_pod("web-1");
        let gone = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let run = deleting(
            scene,
            "web-1",
            || {
                scene
                    .cluster
                    .try_send("DELETE", &scene.pod_path("web-1"), Some(&gone))
                    .expect("it goes");
                scene.make_pod("web-1", &json!({}));
            },
            0,
        );
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr.contains(
                "BLOCKER  target            it was replaced: this is a new one with the same name"
            ),
            "{run}"
        );
        assert!(run.stderr.contains("nothing was deleted"), "{run}");
        assert!(scene.is_there("web-1"));
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
    });
}

#[test]
fn a_pod_that_went_by_itself_is_told_as_that() {
    scene("went", |scene| {
        scene.harmless_pod("web-1");
        let gone = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let go = || {
            scene
                .cluster
                .try_send("DELETE", &scene.pod_path("web-1"), Some(&gone))
                .expect("it goes");
        };
        let run = deleting(scene, "web-1", go, 0);
        assert_eq!(run.code, 0, "{run}");
        assert!(
            run.stdout.ends_with("pod/web-1 was already gone\n"),
            "{run}"
        );
        let events = scene.events();
        assert!(
            events.iter().all(|event| event["reason"] != "ForceDeleted"),
            "{events:#?}"
        );
    });
}

/// Starts to delete `web-1` to `web-3` with nothing to accept, up to the deletion of `web-2`.
fn at_the_second(scene: &Scene, words: &[&str]) -> (Proxy, Running, Kept) {
    let owner = scene.replica_set("web");
    for name in ["web-1", "web-2", "web-3"] {
        scene.ended_pod(name, Some(&owner), &json!({}));
    }
    let proxy = scene.cluster.proxy_for(Treatment::Keep, |method, path| {
        deletes_a_pod(method, path) && path.contains("/pods/web-2")
    });
    let pods = ["pod/web-1", "pod/web-2", "pod/web-3"];
    let maint = scene
        .cluster
        .maint(["force-delete", "-n", &scene.namespace]);
    let maint = maint.args(pods).args(["-m", "why", "--timeout=0"]);
    let (run, kept) = proxy.holds_up(maint.args(words));
    (proxy, run, kept)
}

/// The data about the other pods is just as old.
#[test]
fn a_pod_that_changed_ends_the_deletion_of_the_others() {
    scene("touched", |scene| {
        let (_proxy, run, kept) = at_the_second(scene, &["--accept-risk=none"]);
        touch(scene, "web-2");
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let told = format!(
            "error: pod/web-2 changed after the check; nothing more was deleted\n\
             hint: to check again and delete: kubectl maint force-delete pod/web-2 pod/web-3 -n {} \
             --accept-risk=none -m why\n\
             error: not deleted: pod/web-2, pod/web-3\n",
            scene.namespace
        );
        assert!(run.stderr.ends_with(&told), "{run}");
        assert!(run.stdout.ends_with("pod/web-1 force-deleted\n"), "{run}");
        assert!(scene.is_there("web-2") && scene.is_there("web-3"));
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
    });
}

#[test]
fn a_pod_that_went_by_itself_leaves_the_others_to_be_deleted() {
    scene("others", |scene| {
        let (_proxy, run, kept) = at_the_second(scene, &["--accept-risk=none"]);
        let gone = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let path = scene.pod_path("web-2");
        let went = scene.cluster.try_send("DELETE", &path, Some(&gone));
        went.expect("it goes");
        assert_eq!(kept.passes(), 404);
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        let told = "pod/web-2 was already gone\npod/web-3 force-deleted\n";
        assert!(run.stdout.ends_with(told), "{run}");
    });
}

/// Its clock is so far behind that the heartbeat looks old.
#[test]
fn a_heartbeat_ends_the_deletion_whatever_its_clock_says() {
    scene("behind", |scene| {
        let (_proxy, run, kept) = at_the_second(scene, &["--accept-risk=none"]);
        let heartbeat = format!(
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{}",
            scene.node
        );
        let renewed = json!({"spec": {"renewTime": ago(60)}});
        scene.cluster.patch(&heartbeat, &renewed);
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let told = "error: refused: node-alive; nothing more was deleted\n";
        assert!(run.stderr.contains(told), "{run}");
        assert!(run.stderr.contains("its last heartbeat is 0s old"), "{run}");
        let left = "error: not deleted: pod/web-3\n";
        assert!(run.stderr.ends_with(left), "{run}");
        let deleted = "pod/web-1 force-deleted\npod/web-2 force-deleted\n";
        assert!(run.stdout.ends_with(deleted), "{run}");
        assert!(!scene.is_there("web-2") && scene.is_there("web-3"));
    });
}

#[test]
fn who_accepts_that_the_kubelet_is_alive_is_not_stopped_by_its_heartbeats() {
    scene("beating", |scene| {
        scene.heartbeat();
        let (_proxy, run, kept) = at_the_second(scene, &["--override=node-alive"]);
        scene.heartbeat();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        assert!(!scene.is_there("web-3"));
    });
}

#[test]
fn a_node_that_comes_back_meanwhile_stops_it() {
    scene("revived", |scene| {
        scene.harmless_pod("web-1");
        let revive = || {
            scene.heartbeat();
            touch(scene, "web-1");
        };
        let run = deleting(scene, "web-1", revive, 0);
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr
                .contains("refused: node-alive; nothing was deleted"),
            "{run}"
        );
        assert!(scene.is_there("web-1"));
    });
}

#[test]
fn a_node_that_changed_is_looked_at_again_before_it_goes() {
    scene("returned", |scene| {
        let path = format!("/api/v1/nodes/{}", scene.node);
        let is_there = || scene.cluster.try_send("GET", &path, None).is_ok();
        let proxy = scene.cluster.proxy_for(Treatment::Keep, |method, path| {
            *method == Method::DELETE && path.contains("/nodes/")
        });
        let deleting = |more: &[&str]| {
            let node = format!("node/{}", scene.node);
            let words = ["force-delete", &node, "--accept-risk", "-m", "why"];
            proxy.holds_up(scene.cluster.maint(words).args(more))
        };
        let touch = |text: &str| {
            let label = json!({"metadata": {"labels": {"touched": text}}});
            scene.cluster.patch(&path, &label);
        };

        // Its kubelet is back.
        let (run, kept) = deleting(&[]);
        scene.heartbeat();
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

        // If you accept the risk that it is alive, it is deleted even if it moves.
        let (run, kept) = deleting(&["--override=node-alive"]);
        touch("alive");
        assert_eq!(kept.passes(), 200);
        assert_eq!(run.ends().code, 0);
        assert!(!is_there());
    });
}

#[test]
fn what_is_given_up_only_now_was_not_confirmed() {
    scene("appeared", |scene| {
        scene.ended_member(3, 2);
        let lose_one = || {
            let path = scene.at("/apis/apps/v1", "statefulsets/web/status");
            let status = json!({"status": {"replicas": 3, "readyReplicas": 1}});
            scene.cluster.patch(&path, &status);
            touch(scene, "web-0");
        };
        let run = deleting(scene, "web-0", lose_one, 0);
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr
                .contains("risks not accepted: quorum; nothing was deleted"),
            "{run}"
        );
        assert!(scene.is_there("web-0"));
    });
}

#[test]
fn a_deletion_whose_answer_was_lost_is_the_success_that_it_was() {
    scene("lost", |scene| {
        scene.harmless_pod("web-1");
        let proxy = scene
            .cluster
            .proxy_for(Treatment::LoseAnswer, deletes_a_pod);
        let words = ["--accept-risk", "-m", "why"];
        let run = scene
            .force_delete("web-1", &words)
            .kubeconfig(&proxy.kubeconfig)
            .succeeds();
        assert!(run.stdout.contains("pod/web-1 force-deleted"), "{run}");
        assert!(!scene.is_there("web-1"));
    });
}

#[test]
fn killed_under_its_lock_it_has_deleted_nothing_and_keeps_others_away_for_a_while() {
    scene("killed", |scene| {
        scene.harmless_pod("web-1");
        let proxy = proxy(scene);
        let words = ["--accept-risk=none", "-m", "why"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        run.is_sent(Signal::KILL);
        run.ends_killed();
        drop(kept);
        assert!(scene.is_there("web-1"));
        let holder = || holder_of(&scene.cluster, &scene.node);
        let held_by = holder().expect("it is held");
        assert!(
            held_by.starts_with("alice@bastion/force-delete-"),
            "{held_by}"
        );
        // As its time passes.
        let path = format!("{LEASES}/{}", scene.node);
        let passed = json!({"spec": {"renewTime": ago(600)}});
        scene.cluster.patch(&path, &passed);
        let words = ["--accept-risk=lease-expired", "-m", "why"];
        let again = scene.force_delete("web-1", &words).holder("bob@laptop");
        again.succeeds();
        assert!(!scene.is_there("web-1"));
        assert_eq!(holder(), None);
    });
}

#[test]
fn an_own_lease_that_ends_after_the_report_stops_it() {
    scene("lapsed", |scene| {
        scene.harmless_pod("web-1");
        let own = |seconds| {
            json!({
                "holderIdentity": "alice@bastion", "leaseDurationSeconds": 1800,
                "acquireTime": ago(seconds), "renewTime": ago(seconds),
            })
        };
        scene.cluster.lease(&scene.node, &own(60));
        let looks = AtomicUsize::new(0);
        let proxy = scene
            .cluster
            .proxy_for(Treatment::Keep, move |method, path| {
                let is_look = *method == Method::GET && path.contains("/pods/web-1");
                is_look && looks.fetch_add(1, Ordering::Relaxed) == 1
            });
        let (run, kept) = held_up(&proxy, scene, "web-1", &["--accept-risk=none", "-m", "why"]);
        let path = format!("{LEASES}/{}", scene.node);
        scene.cluster.patch(&path, &json!({"spec": own(3600)}));
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let told = format!(
            "refused: lease: your lock on node/{} has expired; nothing was deleted",
            scene.node
        );
        assert!(run.stderr.contains(&told), "{run}");
        assert!(scene.is_there("web-1"));
    });
}

#[test]
fn a_lease_that_somebody_takes_meanwhile_stops_it() {
    scene("taken", |scene| {
        scene.harmless_pod("web-1");
        scene.cluster.released(&scene.node);
        let proxy = keeping(scene, Method::PATCH);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        scene
            .cluster
            .maint(["acquire", &scene.node])
            .holder("bob@laptop")
            .succeeds();
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let locked = format!(
            "refused: lease: node/{} is locked by bob@laptop (since ",
            scene.node
        );
        assert!(run.stderr.contains(&locked), "{run}");
        assert!(run.stderr.contains(" left); nothing was deleted"), "{run}");
        assert!(scene.is_there("web-1"));
    });
}

#[test]
fn a_deletion_that_comes_out_after_an_interrupt_leaves_its_evidence_and_is_the_last() {
    scene("last", |scene| {
        let pods = ["web-1", "web-2"];
        for pod in pods {
            scene.harmless_pod(pod);
        }
        let proxy = proxy(scene);
        let pods = pods.map(|pod| format!("pod/{pod}"));
        let deletion =
            scene
                .cluster
                .maint(["force-delete", &pods[0], &pods[1], "-n", &scene.namespace]);
        let (run, kept) = proxy.holds_up(deletion.args(["--accept-risk", "-m", "why"]));
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let told = "pod/web-1 force-deleted; interrupted before the check for a replacement\n";
        assert!(run.stdout.ends_with(told), "{run}");
        assert!(!scene.is_there("web-1") && scene.is_there("web-2"));
        let events = scene.events();
        assert_eq!(events.len(), 1, "{events:#?}");
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
    });
}

#[test]
fn who_interrupts_a_deletion_is_told_that_it_may_land() {
    scene("interrupted", |scene| {
        scene.harmless_pod("web-1");
        let proxy = proxy(scene);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        run.interrupt();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let line = "unknown whether pod/web-1 was force-deleted: the request may still take effect (interrupted)";
        assert!(run.stderr.contains(line), "{run}");
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
        drop(kept);
        assert!(scene.is_there("web-1"));
    });
}

/// A server that takes a request and then answers nothing any more.
#[test]
fn a_deletion_that_gets_no_answer_may_still_take_effect() {
    scene("no-answer", |scene| {
        scene.harmless_pod("web-1");
        let deleting = Arc::new(AtomicBool::new(false));
        let is_hit = deleting.clone();
        let proxy = scene.cluster.proxy(move |method, path| {
            if *method == Method::DELETE {
                is_hit.store(true, Ordering::SeqCst);
                return Treatment::Keep;
            }
            match is_hit.load(Ordering::SeqCst) && path.contains("/pods/") {
                true => Treatment::Answer(503, None),
                false => Treatment::Pass,
            }
        });
        let words = ["--accept-risk", "-m", "why", "--request-timeout=2s"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        let run = run.ends();
        assert_eq!(run.code, 1, "{run}");
        assert!(deleting.load(Ordering::SeqCst));
        let line = "error: unknown whether pod/web-1 was force-deleted: the request may still take effect (";
        assert!(run.stderr.contains(line), "{run}");
        let hint = format!(
            "hint: check with `kubectl get pod/web-1 -n {}`",
            scene.namespace
        );
        assert!(run.stderr.contains(&hint), "{run}");
        let notes = notes(scene);
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(
            note.contains("tried to force-delete pod/web-1 (uid "),
            "{note}"
        );
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
        assert!(scene.is_there("web-1"));
        assert_eq!(kept.passes(), 200);
        assert!(!scene.is_there("web-1"));
    });
}

/// If a request got no answer and can no longer take effect, it counts as refused.
#[test]
fn a_deletion_without_an_answer_is_left_at_another_version() {
    scene("outdated", |scene| {
        scene.harmless_pod("web-1");
        let proxy = keeping_first(scene, Method::DELETE);
        let words = ["--accept-risk", "-m", "why", "--request-timeout=2s"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        touch(scene, "web-1");
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let told = "error: pod/web-1 changed after the check; nothing was deleted\n";
        assert!(run.stderr.contains(told), "{run}");
        assert!(scene.is_there("web-1"));
        drop(kept);
    });
}

#[test]
fn a_lock_that_is_taken_after_an_interrupt_is_given_back() {
    scene("late", |scene| {
        scene.harmless_pod("web-1");
        scene.cluster.released(&scene.node);
        let proxy = keeping_first(scene, Method::PATCH);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
        assert!(scene.is_there("web-1"));
    });
}

#[test]
fn who_interrupts_the_locking_is_told_that_it_may_land() {
    scene("locking", |scene| {
        scene.harmless_pod("web-1");
        scene.cluster.released(&scene.node);
        let proxy = keeping(scene, Method::PATCH);
        let words = ["--accept-risk", "-m", "why"];
        let (run, kept) = held_up(&proxy, scene, "web-1", &words);
        run.interrupt();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let line = format!(
            "interrupted: nothing was deleted; node/{} may stay locked for 300s",
            scene.node
        );
        assert!(run.stderr.contains(&line), "{run}");
        assert!(scene.is_there("web-1"));
        drop(kept);
    });
}

/// The server hangs from the deletion on: nothing that comes behind it is waited for, and least of all
/// by those who want to know what was deleted.
#[test]
fn after_an_interrupt_the_outcome_comes_before_the_locks_go_back() {
    scene("hanging", |scene| {
        scene.harmless_pod("web-1");
        let proxy = scene.cluster.proxy_for(Treatment::Keep, |method, path| {
            let is_release = *method == Method::PATCH && path.contains("/leases/");
            deletes_a_pod(method, path) || is_release
        });
        let words = ["--accept-risk", "-m", "why"];
        let (mut run, deletion) = held_up(&proxy, scene, "web-1", &words);
        run.interrupt();
        assert_eq!(deletion.passes(), 200);
        let told = "pod/web-1 force-deleted; interrupted before the check for a replacement";
        loop {
            let line = run.line();
            assert!(!line.is_empty(), "it never told");
            if line == told {
                break;
            }
        }
        // Only now.
        let release = proxy.kept();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let line = format!(
            "unknown whether the lock on node/{} was released",
            scene.node
        );
        assert!(run.stderr.contains(&line), "{run}");
        assert!(!scene.is_there("web-1"));
        drop(release);
    });
}

#[test]
fn a_pod_that_no_longer_matches_is_left_and_told() {
    scene("unlabelled", |scene| {
        for pod in ["web-1", "web-2"] {
            scene.harmless_pod(pod);
        }
        let proxy = scene.cluster.proxy_for(Treatment::Keep, |method, path| {
            *method == Method::POST && path.contains("/leases")
        });
        let deletion =
            scene
                .cluster
                .maint(["force-delete", "-l", "app=web", "-n", &scene.namespace]);
        let (run, kept) = proxy.holds_up(deletion.args(["--accept-risk", "-m", "why"]));
        let label = json!({"metadata": {"labels": {"app": "quarantine"}}});
        scene.cluster.patch(&scene.pod_path("web-1"), &label);
        kept.passes();
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let line = "error: pod/web-1 was not deleted: it no longer matches -l app=web";
        assert!(run.stderr.contains(line), "{run}");
        assert!(!run.stdout.contains("already gone"), "{run}");
        assert!(scene.is_there("web-1") && !scene.is_there("web-2"));
    });
}

/// What the Events of the namespace keep.
fn notes(scene: &Scene) -> Vec<String> {
    let events = scene.events();
    let notes = events.iter().filter_map(|event| event["note"].as_str());
    notes.map(ToOwned::to_owned).collect()
}
