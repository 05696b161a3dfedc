//! Expired locks of nodes that are NotReady or cordoned: their holders may not have finished.

use http::Method;
use insta::assert_snapshot;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::support::Treatment::{Keep, Pass};
use crate::support::{
    Cluster, LEASES, Running, ago, as_text, at_a_terminal, holder_of, in_one_line, on_both, on_one,
    on_real, requests,
};

/// The spec of a Lease that expired an hour ago.
fn expired(holder: &str) -> Value {
    json!({
        "holderIdentity": holder,
        "acquireTime": ago(7200),
        "renewTime": ago(5400),
        "leaseDurationSeconds": 1800,
        "leaseTransitions": 4,
    })
}

/// Creates a cordoned node whose lock has expired.
fn left_by(cluster: &Cluster, short: &str, holder: &str) -> String {
    let node = cluster.node_with(short, &json!({}), &json!({"unschedulable": true}));
    let reason = json!({"kubectl-maint.dev/reason": "new kernel"});
    cluster.lease_with(&node, &reason, &expired(holder));
    node
}

fn cordon(cluster: &Cluster, node: &str, cordoned: bool) {
    let spec = json!({"spec": {"unschedulable": cordoned}});
    cluster.patch(&format!("/api/v1/nodes/{node}"), &spec);
}

fn make_not_ready(cluster: &Cluster, node: &str) {
    let ready = json!({"type": "Ready", "status": "False", "reason": "KubeletNotReady"});
    let status = json!({"status": {"conditions": [ready]}});
    cluster.patch(&format!("/api/v1/nodes/{node}/status"), &status);
}

/// The line does not show since when the nodes were locked: readers would take that for the time of
/// expiry.
#[test]
fn many_of_them_take_one_line() {
    on_one("unfinished-many", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3", "worker-4"];
        let nodes = nodes.map(|short| left_by(cluster, short, "bob@laptop"));
        cluster.maint(["acquire"]).args(&nodes).fails(6);
    });
}

#[test]
fn a_script_takes_it_only_with_the_flag() {
    on_one("unfinished-script", |cluster| {
        let node = left_by(cluster, "worker-1", "bob@laptop");
        let before = cluster.lease_of(&node);
        assert_snapshot!(cluster.maint(["acquire", &node, "-m", "disk"]).run(), @r#"
        $ kubectl maint acquire worker-1 -m disk
        -- stderr
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 -m disk --take-expired`
        -- exit code 6
        "#);
        cluster.maint(["acquire", &node, "--wait"]).fails(6);
        cluster.maint(["acquire", &node, "--dry-run"]).fails(6);
        cluster.maint(["hold", &node, "-m", "disk"]).fails(6);
        let hold = ["hold", &node, "-m", "disk", "--take-over", "--yes"];
        assert_eq!(
            cluster.maint(hold).run().code,
            6,
            "it was not shown to anybody"
        );
        let with = ["with", &node, "-m", "disk", "--", "true"];
        cluster.maint(with).fails(6);
        assert_eq!(cluster.lease_of(&node), before);

        let with = ["with", &node, "-q", "--take-expired", "--", "true"];
        cluster.maint(with).succeeds();
        cluster.patch(
            &format!("{LEASES}/{node}"),
            &json!({"spec": expired("bob@laptop")}),
        );
        let hold = ["hold", &node, "-m", "disk", "--take-expired"];
        cluster.maint(hold).succeeds();
        cluster.maint(["unhold", &node]).succeeds();
        cluster.patch(
            &format!("{LEASES}/{node}"),
            &json!({"spec": expired("bob@laptop")}),
        );
        let taken = cluster
            .maint(["acquire", &node, "--take-expired"])
            .succeeds();
        let warning = format!("Warning: node/{node} had an expired lock of bob@laptop");
        assert!(taken.stderr.contains(&warning), "{taken}");
    });
}

#[test]
fn a_node_that_is_not_ready_counts_too_and_so_does_ones_own_lock() {
    on_real("unfinished-own", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &expired("alice@bastion"));
        make_not_ready(cluster, &node);
        let run = cluster.maint(["acquire", "-v6", &node]).run();
        assert_eq!(requests(&run), ["GET", "GET"], "{run}");
        assert_snapshot!(cluster.maint(["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: the lock of alice@bastion has expired (since [time], expired at [time], [length] ago), and the node is NotReady
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 --take-expired`
        -- exit code 6
        ");
        // `renew` continues the same lock, so it needs no flag.
        cluster.maint(["renew", &node]).succeeds();
    });
}

#[test]
fn one_of_several_keeps_all_from_being_acquired() {
    on_one("unfinished-several", |cluster| {
        let left = left_by(cluster, "worker-1", "bob@laptop");
        let free = cluster.node("worker-2");
        cluster.lease(&free, &json!({}));
        assert_snapshot!(cluster.maint(["acquire", &left, &free]).run(), @r#"
        $ kubectl maint acquire worker-1 worker-2
        -- stderr
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 worker-2 --take-expired`
        0 of 2 nodes acquired; add --partial to lock the node that was not refused
        -- exit code 6
        "#);
        assert_eq!(holder_of(cluster, &free), None);
        let partial = ["acquire", &left, &free, "--partial", "-q"];
        cluster.maint(partial).fails(6);
        assert_eq!(holder_of(cluster, &left).as_deref(), Some("bob@laptop"));
    });
}

/// The state of the node at the moment of expiry decides.
#[test]
fn a_wait_checks_the_node_when_the_lock_expires() {
    on_one("unfinished-wait", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let [left, finished] = &nodes;
        cordon(cluster, finished, true);
        let waits = nodes.each_ref().map(|node| {
            cluster.lease(node, &json!({}));
            let bob = cluster.maint(["acquire", node, "--duration", "3s"]);
            bob.holder("bob@laptop").succeeds();
            let waits = cluster.maint(["acquire", node, "--wait"]);
            waits.until_it_says("waiting for node/")
        });
        cordon(cluster, left, true);
        cordon(cluster, finished, false);
        let [left, finished] = waits.map(Running::ends);
        assert_eq!(left.code, 6, "{left}");
        assert_eq!(finished.code, 0, "{finished}");
    });
}

/// The lock is free when it is read, and is another holder's expired lock when it is written.
#[test]
fn the_lock_is_checked_again_when_it_is_written() {
    on_both("unfinished-race", |cluster| {
        let node = cluster.node_with("worker-1", &json!({}), &json!({"unschedulable": true}));
        cluster.lease(&node, &json!({}));
        for verb in [&["acquire"][..], &["hold", "-m", "disk"]] {
            let proxy = cluster.proxy_for_writes(&[Keep, Pass]);
            let (run, kept) = proxy.holds_up(cluster.maint(verb).args([&node]));
            cluster.patch(
                &format!("{LEASES}/{node}"),
                &json!({"spec": expired("bob@laptop")}),
            );
            assert_eq!(kept.passes(), 409);
            let run = run.ends();
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("still cordoned"), "{run}");
            assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
            cluster.patch(
                &format!("{LEASES}/{node}"),
                &json!({"spec": {"holderIdentity": ""}}),
            );
        }
    });
}

/// Starts a run at a terminal and reads up to its question. Returns what was shown.
fn at_prompt(cluster: &Cluster, arguments: &[&str]) -> (PtySession, String) {
    let mut terminal = at_a_terminal(cluster.maint(arguments));
    let facts = terminal.exp_string("[y/N]").expect("a question");
    (terminal, in_one_line(&as_text(&facts)))
}

/// Sends `answer` and returns the rest of the output.
fn answered(mut terminal: PtySession, answer: &str) -> String {
    terminal.send_line(answer).expect("it listens");
    as_text(&terminal.exp_eof().expect("it ends"))
}

#[test]
fn a_person_is_asked() {
    on_real("unfinished-asked", |cluster| {
        let node = left_by(cluster, "worker-1", "bob@laptop");
        let with = ["with", &node, "--", "true"];
        for (words, question) in [
            (&["acquire", &node][..], "Lock node/"),
            (&["hold", &node, "-m", "disk"], "Put node/"),
            (&with, "Lock node/"),
        ] {
            let (terminal, facts) = at_prompt(cluster, words);
            for fact in [
                "expired lock of bob@laptop",
                "new kernel",
                "still cordoned",
                question,
            ] {
                assert!(facts.contains(fact), "{fact}: {facts}");
            }
            let said = answered(terminal, "n");
            assert!(said.contains("not confirmed"), "{said}");
            assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
        }
        let (terminal, _) = at_prompt(cluster, &["acquire", &node]);
        let said = answered(terminal, "y");
        assert!(said.contains("acquired by alice@bastion"), "{said}");
        // The question already showed both facts, so they are not repeated.
        assert!(!said.contains("cordoned"), "{said}");
        assert!(!said.contains("bob@laptop"), "{said}");
    });
}

/// The answer applies only to the lock that was shown.
#[test]
fn another_lock_than_the_one_that_was_shown_is_refused() {
    on_real("unfinished-changed", |cluster| {
        let node = left_by(cluster, "worker-1", "bob@laptop");
        for words in [&["acquire", &node][..], &["hold", &node, "-m", "disk"]] {
            let (terminal, _) = at_prompt(cluster, words);
            cluster.patch(
                &format!("{LEASES}/{node}"),
                &json!({"spec": expired("carol@desk")}),
            );
            let said = answered(terminal, "y");
            assert!(
                said.contains("the lock of carol@desk has expired"),
                "{said}"
            );
            assert_eq!(holder_of(cluster, &node).as_deref(), Some("carol@desk"));
            cluster.patch(
                &format!("{LEASES}/{node}"),
                &json!({"spec": expired("bob@laptop")}),
            );
        }
    });
}

/// Some clients do not count acquisitions in `leaseTransitions`.
#[test]
fn a_later_lock_of_the_same_holder_is_another() {
    on_real("unfinished-same-holder", |cluster| {
        let node = left_by(cluster, "worker-1", "bob@laptop");
        let (terminal, _) = at_prompt(cluster, &["acquire", &node]);
        let later = json!({"spec": {"acquireTime": ago(6000)}});
        cluster.patch(&format!("{LEASES}/{node}"), &later);
        let said = answered(terminal, "y");
        assert!(
            said.contains("the lock of bob@laptop has expired"),
            "{said}"
        );
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn an_answer_counts_for_the_nodes_in_the_question_as_they_are_then() {
    on_real("unfinished-answer", |cluster| {
        let left = left_by(cluster, "worker-1", "bob@laptop");
        let free = cluster.node("worker-2");
        let (terminal, _) = at_prompt(cluster, &["acquire", &left, "--partial"]);
        answered(terminal, "n");
        let (terminal, _) = at_prompt(cluster, &["acquire", &left, &free, "--partial"]);
        let said = answered(terminal, "n");
        assert!(said.contains("still cordoned"), "{said}");
        assert_eq!(
            holder_of(cluster, &free).as_deref(),
            Some("alice@bastion"),
            "{said}"
        );
        assert_eq!(holder_of(cluster, &left).as_deref(), Some("bob@laptop"));

        let ready = cluster.node("worker-3");
        cluster.lease(&ready, &expired("bob@laptop"));
        let (terminal, facts) = at_prompt(cluster, &["acquire", &left, &ready]);
        assert!(!facts.contains(&format!("{ready}:")), "{facts}");
        cordon(cluster, &ready, true);
        let said = answered(terminal, "y");
        let refused = format!("cannot acquire node/{ready}: the lock of bob@laptop has expired");
        assert!(said.contains(&refused), "{said}");
        assert_ne!(
            holder_of(cluster, &left).as_deref(),
            Some("alice@bastion"),
            "{said}"
        );

        let json = ["acquire", &ready, "-o", "json"];
        let (terminal, _) = at_prompt(cluster, &json);
        let said = answered(terminal, "n");
        assert!(said.contains(r#""code": "NotConfirmed""#), "{said}");
    });
}

#[test]
fn yes_does_not_stand_for_the_flag() {
    on_real("unfinished-yes", |cluster| {
        let node = left_by(cluster, "worker-1", "bob@laptop");
        let mut terminal = at_a_terminal(cluster.maint(["acquire", &node, "--yes"]));
        let said = as_text(&terminal.exp_eof().expect("it ends"));
        assert!(said.contains("--take-expired"), "{said}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

/// Its history shows it, and nothing else does.
#[test]
fn an_expired_lock_that_was_replaced_before_a_failure_is_named() {
    on_one("expired-replaced", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| {
            let node = cluster.node(short);
            cluster.lease(&node, &expired("bob@laptop"));
            node
        });
        let end = format!("/{}", nodes[1]);
        let is_second =
            move |method: &Method, path: &str| method == Method::PATCH && path.contains(&end);
        let proxy = cluster.proxy_for(Keep, is_second);
        let (run, kept) = proxy.holds_up(cluster.maint(["acquire"]).args(&nodes));
        let bob = cluster.maint(["acquire", &nodes[1]]).holder("bob@laptop");
        bob.succeeds();
        assert_eq!(kept.passes(), 409);
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1 worker-2
        -- stderr
        Warning: node/worker-1 had an expired lock of bob@laptop (since [time], expired at [time], [length] ago); their work may be unfinished; the node is free now
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 worker-2 --wait`
        0 of 2 nodes acquired; add --partial to lock the node that was not refused
        -- exit code 3
        ");
        assert_eq!(holder_of(cluster, &nodes[0]), None);
    });
}
