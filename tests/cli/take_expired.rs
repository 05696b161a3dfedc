//! Expired locks of nodes that are NotReady or cordoned: their holders may not have finished.

use http::Method;
use insta::assert_snapshot;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::support::Treatment::{Keep, Pass};
use crate::support::{
    Cluster, LEASES, Running, ago, as_text, at_a_terminal, holder_of, in_memory, in_one_line,
    on_both, on_one, on_real, requests,
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
        assert_snapshot!(cluster.maint(["acquire"]).args(&nodes).run(), @r#"
        $ kubectl maint acquire worker-1 worker-2 worker-3 worker-4
        -- stderr
        error: cannot acquire 4 nodes (worker-1, worker-2, worker-3, worker-4): the locks of bob@laptop have expired: "new kernel", and the nodes are still cordoned
        hint: check what was left unfinished, then lock them with `kubectl maint acquire worker-1 worker-2 worker-3 worker-4 --take-expired`
        0 of 4 nodes acquired
        -- exit code 6
        "#);
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
        assert_snapshot!(cluster.maint(["acquire", &node, "--wait"]).run(), @r#"
        $ kubectl maint acquire worker-1 --wait
        -- stderr
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 --take-expired --wait`
        -- exit code 6
        "#);
        assert_snapshot!(cluster.maint(["acquire", &node, "--dry-run"]).run(), @r#"
        $ kubectl maint acquire worker-1 --dry-run
        -- stderr
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 --dry-run --take-expired`
        -- exit code 6
        "#);
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "disk"]).run(), @r#"
        $ kubectl maint hold worker-1 -m disk
        -- stderr
        error: cannot put node/worker-1 on hold: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint hold worker-1 -m disk --take-expired`
        -- exit code 6
        "#);
        let hold = ["hold", &node, "-m", "disk", "--take-over", "--yes"];
        assert_eq!(
            cluster.maint(hold).run().code,
            6,
            "it was not shown to anybody"
        );
        let with = ["with", &node, "-m", "disk", "--", "true"];
        assert_snapshot!(cluster.maint(with).run(), @r#"
        $ kubectl maint with worker-1 -m disk -- true
        -- stderr
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint with worker-1 -m disk --take-expired -- COMMAND`
        -- exit code 6
        "#);
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
        assert_snapshot!(cluster.maint(["acquire", &node, "--take-expired"]).run(), @"
        $ kubectl maint acquire worker-1 --take-expired
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        Warning: node/worker-1 had an expired lock of bob@laptop (since [time], expired at [time], [length] ago); their work may be unfinished
        Warning: node/worker-1: cordoned
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
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
        cordon(cluster, &node, true);
        assert_snapshot!(cluster.maint(["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: the lock of alice@bastion has expired (since [time], expired at [time], [length] ago), and the node is NotReady and still cordoned
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
        assert_snapshot!(cluster.maint(partial).run(), @r#"
        $ kubectl maint acquire worker-1 worker-2 --partial -q
        -- stderr
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired: "new kernel" (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 --take-expired`
        -- exit code 6
        "#);
        assert_eq!(holder_of(cluster, &left).as_deref(), Some("bob@laptop"));
    });
}

/// A hint with only one of the two flags would lead to another refusal.
#[test]
fn a_set_that_needs_two_flags_has_one_hint_with_both() {
    on_one("unfinished-flags", |cluster| {
        let left = left_by(cluster, "worker-1", "bob@laptop");
        let other = left_by(cluster, "worker-2", "dave@laptop");
        let (locked, own) = (cluster.node("worker-3"), cluster.node("worker-4"));
        let carol = cluster.maint(["acquire", &locked]);
        carol.holder("carol@laptop").succeeds();
        let hints = |words: &[&str]| -> Vec<String> {
            let run = cluster.maint(words).run().to_string();
            let hints = run.lines().filter(|line| line.starts_with("hint: "));
            hints.map(ToOwned::to_owned).collect()
        };
        assert_eq!(
            hints(&["acquire", &left, &other, &locked, "-m", "disk"]),
            [
                "hint: check what was left unfinished, then lock them with `kubectl maint acquire worker-1 worker-2 worker-3 -m disk \
                 --take-expired --wait`"
            ]
        );
        assert_eq!(
            hints(&["acquire", &left, &locked, "--duration=1h"]),
            [
                "hint: check what was left unfinished, then lock it by adding `--take-expired --wait`"
            ]
        );
        let script = format!("$PLUGIN acquire {left} {locked} $MAINT_NODE");
        assert_eq!(
            hints(&["with", &own, "--", "/bin/sh", "-c", &script]),
            [
                "hint: this runs inside `with`, which has the lock; act as its holder with `kubectl maint acquire worker-1 \
                 worker-3 worker-4 --reentry --take-expired --wait --holder alice@bastion/with-[process]`"
            ]
        );
        let waits = [
            "acquire",
            &left,
            &locked,
            "-m",
            "disk",
            "--take-expired",
            "--wait",
        ];
        let waits = cluster.maint(waits).until_it_says("waiting for node/");
        let release = cluster.maint(["release", &locked]);
        release.holder("carol@laptop").succeeds();
        assert_eq!(waits.ends().code, 0);
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
        assert_snapshot!(left, @"
        $ kubectl maint acquire worker-1 --wait
        -- stderr
        waiting for node/worker-1: locked by bob@laptop (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        error: cannot acquire node/worker-1: the lock of bob@laptop has expired (since [time], expired at [time], [length] ago), and the node is still cordoned
        hint: check what was left unfinished, then lock it with `kubectl maint acquire worker-1 --take-expired --wait`
        -- exit code 6
        ");
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

#[test]
fn of_many_nodes_it_asks_once() {
    in_memory("unfinished-many", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| left_by(cluster, short, "bob@laptop"));
        let [one, other] = &nodes;
        for (words, question) in [
            (&["acquire", one, other][..], "Lock these 2 nodes anyway?"),
            (
                &["hold", one, other, "-m", "disk"],
                "Put these 2 nodes on hold anyway?",
            ),
        ] {
            let (terminal, facts) = at_prompt(cluster, words);
            assert!(facts.contains(question), "{facts}");
            answered(terminal, "n");
        }
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
fn after_a_no_the_other_nodes_count_as_they_are_then() {
    on_real("unfinished-no", |cluster| {
        let left = left_by(cluster, "worker-1", "bob@laptop");
        let ready = cluster.node("worker-2");
        cluster.lease(&ready, &expired("bob@laptop"));
        let (terminal, _) = at_prompt(cluster, &["acquire", &left, &ready, "--partial"]);
        cordon(cluster, &ready, true);
        let said = answered(terminal, "n");
        let refused = format!("cannot acquire node/{ready}: the lock of bob@laptop has expired");
        assert!(said.contains(&refused), "{said}");
        assert_eq!(holder_of(cluster, &ready).as_deref(), Some("bob@laptop"));
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
        assert_snapshot!(run.ends(), @r#"
        "#);
        assert_eq!(holder_of(cluster, &nodes[0]), None);
    });
}
