//! Writes that get no answer: they may have taken effect, or may still do so.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use insta::assert_snapshot;

use crate::support::Treatment::{Answer, Keep, LoseAnswer, Pass, Without};
use crate::support::{Cluster, Maint, Proxy, on_both, on_one};

/// A run through a proxy, with a time limit of 4 s for each answer, and so of 12 s for the command.
fn through(proxy: &Proxy, cluster: &Cluster, words: &[&str]) -> Maint {
    cluster
        .maint(words)
        .kubeconfig(&proxy.kubeconfig)
        .arg("--request-timeout=4s")
}

#[test]
fn an_acquisition_with_a_lost_answer_is_a_success() {
    on_both("lost-acquire", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[LoseAnswer]);
        // The connection is cut after the server stored the write, so the acquisition is a success.
        through(&proxy, cluster, &["acquire", &node]).succeeds();
        let spec = &cluster.lease_of(&node)["spec"];
        assert_eq!(spec["holderIdentity"], "alice@bastion");
        assert_eq!(spec["leaseTransitions"], 1);
    });
}

#[test]
fn a_created_lease_whose_answer_was_lost_is_ours() {
    on_both("lost-create", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for_writes(&[LoseAnswer]);
        // The nonce identifies the Lease as the one that this command created.
        assert_snapshot!(through(&proxy, cluster, &["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1 --request-timeout=4s
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        node/worker-1: the API server's answer was lost, but a second read shows that the write succeeded
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
        assert_eq!(cluster.lease_of(&node)["spec"]["leaseTransitions"], 1);
    });
}

#[test]
fn a_release_with_a_lost_answer_is_a_success() {
    on_one("lost-release", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let proxy = cluster.proxy_for_writes(&[LoseAnswer]);
        assert_snapshot!(through(&proxy, cluster, &["release", &node]).run(), @"
        $ kubectl maint release worker-1 --request-timeout=4s
        node/worker-1 released
        -- stderr
        node/worker-1: the API server's answer was lost, but a second read shows that the write succeeded
        -- exit code 0
        ");
        assert_eq!(cluster.lease_of(&node)["spec"]["holderIdentity"], "");
    });
}

#[test]
fn several_nodes_whose_answers_were_lost_are_held() {
    on_one("lost-several", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        let proxy = cluster.proxy_for_writes(&[Pass, LoseAnswer]);
        // The cut connection may lose the answers for the other nodes as well.
        let run = through(&proxy, cluster, &["acquire"]).args(&nodes).run();
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stderr.contains("3 of 3 nodes locked"), "{run}");
        assert!(run.stderr.contains("answer was lost"), "{run}");
        for node in &nodes {
            let spec = &cluster.lease_of(node)["spec"];
            assert_eq!(spec["holderIdentity"], "alice@bastion");
            assert_eq!(spec["leaseTransitions"], 1);
        }
    });
}

#[test]
fn the_last_line_about_several_nodes_reports_unknown_outcomes() {
    on_one("lost-summary", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        for node in &nodes {
            cluster.released(node);
        }
        let met = AtomicUsize::new(0);
        let proxy = cluster.proxy(move |method, path| match path {
            _ if method == Method::GET => Pass,
            path if path.contains("worker-2") => Answer(503, None),
            // The first node is acquired, and its release is refused.
            _ if met.fetch_add(1, Ordering::Relaxed) == 0 => Pass,
            _ => Answer(403, None),
        });
        let run = through(&proxy, cluster, &["acquire"]).args(&nodes).run();
        let id = cluster.maint(["status", &nodes[0], "-o", "lock-id"]).run();
        assert_eq!(id.stdout.lines().count(), 1, "{id}");
        assert_snapshot!(run, @"
        $ kubectl maint acquire --request-timeout=4s worker-1 worker-2
        -- stderr
        still waiting for the API server
        error: node/worker-1 was acquired but could not be released, and may be locked until [time]: Error from server (Forbidden): the proxy says so
        hint: release it with `kubectl maint release worker-1 --lock-id [lock-id]`
        error: unknown whether node/worker-2 was acquired: the write may still take effect (Error from server or proxy (ServiceUnavailable): the proxy says so)
        hint: check with `kubectl maint status worker-2`
        1 of 2 nodes locked; unknown: worker-2
        -- exit code 1
        ");
    });
}

#[test]
fn a_lock_that_the_server_stored_with_other_fields_is_not_denied() {
    on_both("lost-fields", |cluster| {
        let names = ["a", "a-altered", "b", "b-altered", "c", "c-altered"];
        let nodes = names.map(|short| cluster.node(short));
        for node in &nodes {
            cluster.released(node);
        }
        let [held, acquired, worked_on] = [&nodes[0..2], &nodes[2..4], &nodes[4..6]];
        let proxy = cluster.proxy(|method, path| {
            match method == Method::PATCH && path.contains("-altered?") {
                true => Without("/metadata/annotations"),
                false => Pass,
            }
        });
        let run = |words: &[&str]| through(&proxy, cluster, words);
        let hold = run(&["hold", "-m", "disk"]).args(held).run();
        assert_snapshot!(hold, @"
        $ kubectl maint hold -m disk --request-timeout=4s a a-altered
        node/a on hold by alice@bastion
        -- stderr
        error: unknown whether node/a-altered was put on hold: the API server changed what was written (an admission webhook may have done this)
        hint: check with `kubectl maint status a-altered`
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold a
        1 of 2 nodes on hold; unknown: a-altered
        -- exit code 1
        ");
        let holder = cluster.lease_of(&held[1])["spec"]["holderIdentity"].clone();
        assert_eq!(holder, "kubeadm:alice@bastion");
        let with = run(&["with"]).args(worked_on).args(["--", "true"]).run();
        assert_snapshot!(with, @"
        $ kubectl maint with --request-timeout=4s c c-altered -- true
        -- stderr
        error: unknown whether node/c-altered was acquired: the API server changed what was written (an admission webhook may have done this)
        hint: check with `kubectl maint status c-altered`
        -- exit code 125
        ");
        let acquire = run(&["acquire", "-o", "json"]).args(acquired).run();
        assert_snapshot!(acquire, @r#"
        $ kubectl maint acquire -o json --request-timeout=4s b b-altered
        {
          "apiVersion": "kubectl-maint.dev/v2",
          "kind": "NodeMaintenanceList",
          "items": [
            {
              "apiVersion": "kubectl-maint.dev/v2",
              "kind": "NodeMaintenance",
              "node": "b",
              "error": {
                "code": "OtherFailed",
                "message": "cannot acquire node/b: another node failed"
              }
            },
            {
              "apiVersion": "kubectl-maint.dev/v2",
              "kind": "NodeMaintenance",
              "node": "b-altered",
              "error": {
                "code": "Unknown",
                "message": "unknown whether node/b-altered was acquired: the API server changed what was written (an admission webhook may have done this)",
                "hint": "check with `kubectl maint status b-altered`"
              }
            }
          ]
        }
        -- stderr
        error: unknown whether node/b-altered was acquired: the API server changed what was written (an admission webhook may have done this)
        hint: check with `kubectl maint status b-altered`
        not acquired: b; unknown: b-altered
        -- exit code 1
        "#);
    });
}

#[test]
fn a_write_that_lands_after_the_client_gave_up_was_never_called_failed() {
    on_one("lost-late", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Keep; 16]);
        // The outcome is unknown, and the message says so.
        assert_snapshot!(through(&proxy, cluster, &["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1 --request-timeout=4s
        -- stderr
        still waiting for the API server
        error: unknown whether node/worker-1 was acquired: the write may still take effect (no answer within 4s)
        hint: check with `kubectl maint status worker-1`
        -- exit code 1
        ");
        assert_eq!(cluster.lease_of(&node)["spec"]["holderIdentity"], "");
        // Later, the write arrives.
        assert_eq!(proxy.kept().passes(), 200);
        assert_eq!(
            cluster.lease_of(&node)["spec"]["holderIdentity"],
            "alice@bastion"
        );
        assert_snapshot!(cluster.maint(["acquire", &node]).holder("bob@laptop").run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: locked by alice@bastion (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 --wait`
        -- exit code 3
        ");
    });
}

#[test]
fn a_write_that_hangs_is_settled_by_its_repetition() {
    on_both("lost-again", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Keep]);
        // The same write is sent again and succeeds. Both have the same resource version, so only one can take effect.
        assert_snapshot!(through(&proxy, cluster, &["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1 --request-timeout=4s
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
        let landed = cluster.lease_of(&node);
        assert_eq!(landed["spec"]["leaseTransitions"], 1);
        assert_eq!(proxy.kept().passes(), 409);
        assert_eq!(cluster.lease_of(&node), landed);
    });
}

#[test]
fn a_write_with_a_lost_answer_does_not_replace_a_new_holder() {
    on_one("lost-other", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Keep]);
        let (alice, kept) = proxy.holds_up(through(&proxy, cluster, &["acquire", &node]));
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        assert_eq!(kept.passes(), 409);
        // The write is known to have failed.
        assert_snapshot!(alice.ends(), @"
        $ kubectl maint acquire worker-1 --request-timeout=4s
        -- stderr
        error: cannot acquire node/worker-1: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 --wait`
        -- exit code 3
        ");
        assert_eq!(
            cluster.lease_of(&node)["spec"]["holderIdentity"],
            "bob@laptop"
        );
    });
}

#[test]
fn an_acquisition_that_ended_before_it_was_stored_is_no_success() {
    on_one("lost-stale", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Keep, Keep]);
        let words = ["acquire", &node, "--duration=3s", "--request-timeout=8s"];
        let output = ["-o", "json"];
        let maint = cluster.maint(words).args(output);
        let (alice, first) = proxy.holds_up(maint);
        let second = proxy.kept();
        // The first write is stored only when its time limit of 8 s is over, and its copy never is. Its lock ended 6 s
        // after it was sent: the duration of 3 s, and the 3 s that contenders wait longer.
        assert_eq!(first.passes(), 200);
        let stale = cluster.lease_of(&node);
        assert_eq!(second.passes(), 409);
        let run = alice.ends();
        assert_eq!(run.code, 0, "{run}");
        let lease = cluster.lease_of(&node);
        let acquired = |lease: &serde_json::Value| seconds(&lease["spec"]["acquireTime"]);
        assert_ne!(acquired(&stale), acquired(&lease), "{run}");
        // On a slow machine, the second acquisition may also have expired before its answer came.
        assert!(
            lease["spec"]["leaseTransitions"].as_i64() >= Some(2),
            "{run}"
        );
        let message = run.item();
        assert_eq!(seconds(&message["acquiredAt"]), acquired(&lease), "{run}");
    });
}

/// Cuts the time after its seconds.
fn seconds(time: &serde_json::Value) -> String {
    let text = time.as_str().expect("a time");
    text.chars().take("2026-01-01T00:00:00".len()).collect()
}
