//! The command `release`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{
    Cluster, LEASES, ago, events_of, holder_of, in_memory, on_both, on_one, on_real, requests,
};

#[test]
fn it_can_be_used_in_cleanup_traps() {
    on_one("release-trap", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        assert_snapshot!(cluster.maint(["release", &node]).run(), @r"
        $ kubectl maint release worker-1
        node/worker-1 released
        -- exit code 0
        ");
        assert_snapshot!(cluster.maint(["release", &node]).run(), @r"
        $ kubectl maint release worker-1
        node/worker-1 already free
        -- exit code 0
        ");
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        assert_snapshot!(cluster.maint(["release", &node]).run(), @"
        $ kubectl maint release worker-1
        -- stderr
        error: cannot release node/worker-1: locked by bob@laptop (since [time], until [time], [length] left); you are alice@bastion
        hint: ask bob@laptop to release it; if nobody works there, release it with `kubectl maint release worker-1 --force -m WHY`
        -- exit code 3
        ");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
        let expired = json!({"spec": {"acquireTime": ago(7200), "renewTime": ago(5400)}});
        cluster.patch(&format!("{LEASES}/{node}"), &expired);
        assert_snapshot!(cluster.maint(["release", &node]).run(), @"
        $ kubectl maint release worker-1
        -- stderr
        error: cannot release node/worker-1: the lock of bob@laptop has expired (since [time], expired at [time], [length] ago); you are alice@bastion
        hint: acquire it with `kubectl maint acquire worker-1 -m WHY`, or only end the lock with `kubectl maint release worker-1 --force -m WHY`
        -- exit code 3
        ");
        let force = ["release", &node, "--force", "--yes", "-m", "bob is away"];
        let run = cluster.maint(force).succeeds();
        let released = format!("node/{node} released (expired lock of bob@laptop)\n");
        assert_eq!(run.stdout, released, "{run}");
    });
}

#[test]
fn a_node_that_is_gone_has_to_be_expected() {
    on_one("release-gone", |cluster| {
        let gone = cluster.name("decommissioned");
        assert_snapshot!(cluster.maint(["release", &gone]).run(), @r#"
        $ kubectl maint release decommissioned
        -- stderr
        Error from server (NotFound): nodes "decommissioned" not found
        hint: list all nodes with `kubectl maint status --all`
        -- exit code 1
        "#);
        assert_snapshot!(cluster.maint(["release", &gone, "--ignore-not-found"]).run(), @"
        $ kubectl maint release decommissioned --ignore-not-found
        node/decommissioned already free
        -- exit code 0
        ");
    });
}

#[test]
fn the_note_of_a_release_is_not_shown_with_the_next_lock() {
    on_one("release-words", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node, "-m", "disk"]).succeeds();
        let words = ["release", &node, "-m", "fsck is left to do"];
        cluster.maint(words).succeeds();
        let status = || {
            let run = cluster.maint(["status", &node, "-o", "json"]).succeeds();
            run.item()
        };
        assert_eq!(status()["lastReason"], "fsck is left to do");
        // Leader election in client-go acquires like this, and leaves annotations unchanged.
        let taken = json!({"spec": {
            "holderIdentity": "operator",
            "acquireTime": ago(0),
            "renewTime": ago(0),
            "leaseDurationSeconds": 60,
            "leaseTransitions": 2,
        }});
        cluster.patch(&format!("{LEASES}/{node}"), &taken);
        let status = status();
        assert_eq!(status["holder"], "operator");
        assert!(status["reason"].is_null(), "{status}");
        assert!(status["lastReason"].is_null(), "{status}");
    });
}

#[test]
fn a_released_node_has_no_lock_id() {
    let cluster = Cluster::nowhere();
    for verb in ["release", "unhold"] {
        let run = cluster.maint([verb, "worker-1", "-o", "lock-id"]).run();
        assert_eq!(run.code, 2, "{run}");
    }
}

#[test]
fn an_own_hold_is_ended() {
    on_one("release-hold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let bob = |words: &[&str]| cluster.maint(words).holder("bob@laptop").run();
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_snapshot!(bob(&["release", &node]), @r#"
        $ kubectl maint release worker-1
        -- stderr
        error: cannot release node/worker-1: on hold by alice@bastion: "disk" (since [time])
        hint: ask alice@bastion to end the hold; if nobody works there, end it with `kubectl maint unhold worker-1`
        -- exit code 3
        "#);
        assert_eq!(bob(&["release", &node, "--force", "--yes"]).code, 3);
        assert_snapshot!(cluster.maint(["release", &node, "--dry-run"]).run(), @"
        $ kubectl maint release worker-1 --dry-run
        node/worker-1 hold ended (dry run)
        -- exit code 0
        ");
        assert_eq!(
            holder_of(cluster, &node).as_deref(),
            Some("kubeadm:alice@bastion")
        );
        assert_snapshot!(cluster.maint(["release", &node, "-m", "disk is new"]).run(), @"
        $ kubectl maint release worker-1 -m \"disk is new\"
        node/worker-1 hold ended
        -- exit code 0
        ");
        assert_eq!(holder_of(cluster, &node), None);
        let events = events_of(cluster, &node);
        let ended =
            r#"MaintenanceUnhold: alice@bastion ended their maintenance hold: "disk is new""#;
        assert!(events.ends_with(ended), "{events}");
        // A second release is no error.
        assert_eq!(cluster.maint(["release", &node]).run().code, 0);
    });
}

#[test]
fn the_lock_id_of_an_own_hold_ends_only_that_hold() {
    on_one("release-hold-lock-id", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let id = |words: &[&str]| {
            let run = cluster.maint(words).args(["-o", "lock-id"]).succeeds();
            let id = run.stdout.trim_end();
            id.to_owned()
        };
        let earlier = id(&["hold", &node, "-m", "disk"]);
        cluster.maint(["unhold", &node]).succeeds();
        let later = id(&["hold", &node, "-m", "disk"]);
        assert_eq!(
            cluster
                .maint(["release", &node, "--lock-id", &earlier])
                .run()
                .code,
            3
        );
        assert_snapshot!(cluster.maint(["release", &node, "--lock-id", &later]).run(), @"
        $ kubectl maint release worker-1 --lock-id [lock-id]
        node/worker-1 hold ended
        -- exit code 0
        ");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

/// --mine does not include holds, because they are meant to stay.
#[test]
fn mine_releases_locks_but_no_holds() {
    on_one("release-mine-hold", |cluster| {
        let [locked, held] = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        for node in [&locked, &held] {
            cluster.lease(node, &json!({}));
        }
        let carol = |words: &[&str]| cluster.maint(words).holder("carol@mine").succeeds();
        carol(&["acquire", &locked]);
        carol(&["hold", &held, "-m", "disk"]);
        carol(&["release", "--mine"]);
        assert_eq!(holder_of(cluster, &locked), None);
        assert_eq!(
            holder_of(cluster, &held).as_deref(),
            Some("kubeadm:carol@mine")
        );
    });
}

#[test]
fn lock_ids_of_multiple_nodes_each_apply_to_their_own() {
    on_one("release-lock-ids", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let [first, second] = nodes.each_ref().map(String::as_str);
        let acquired = cluster
            .maint(["acquire", first, second, "-o", "lock-id"])
            .succeeds();
        // A shell passes the ids like this.
        let ids = acquired.stdout.trim_end();
        let run = |words: &[&str]| cluster.maint(words).args(["--lock-id", ids]).run();
        assert_eq!(run(&["renew", second, first]).code, 0);
        let run = run(&["verify"]);
        assert_eq!((run.code, run.stdout.lines().count()), (0, 2), "{run}");

        cluster.maint(["release", second]).succeeds();
        cluster.maint(["acquire", second]).succeeds();
        let release = cluster.maint(["release", first, second]);
        assert_snapshot!(release.env("MAINT_LOCK_ID", ids).run(), @"
        $ kubectl maint release worker-1 worker-2
        node/worker-1 released
        -- stderr
        error: cannot release node/worker-2: replaced by a newer lock of alice@bastion (since [time], until [time], [length] left)
        hint: show the current lock with `kubectl maint status worker-2`
        1 of 2 nodes free; not released: worker-2
        -- exit code 3
        ");
        let mine = cluster.maint(["renew", "--mine"]);
        mine.env("MAINT_LOCK_ID", ids).fails(2);
    });
}

#[test]
fn a_lock_id_releases_only_its_acquisition() {
    on_both("release-token", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let acquired = cluster
            .maint(["acquire", &node, "-o", "lock-id"])
            .succeeds();
        let id = acquired.stdout.trim_end();
        cluster.maint(["release", &node]).succeeds();
        cluster.maint(["acquire", &node]).succeeds();
        let run = cluster.maint(["release", &node, "--lock-id", id]).run();
        assert_eq!(run.code, 3, "{run}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("alice@bastion"));
        for no_id in ["worker-1", ""] {
            let run = cluster.maint(["release", &node, "--lock-id", no_id]).run();
            assert!(run.stderr.contains("not a lock id"), "{run}");
            assert_eq!(run.code, 2, "{run}");
        }
        assert_snapshot!(cluster.maint(["release", &node]).env("MAINT_LOCK_ID", "").run(), @"
        $ kubectl maint release worker-1
        -- stderr
        error: MAINT_LOCK_ID is not a lock id
        hint: unset MAINT_LOCK_ID, or set it to the output of `acquire -o lock-id`
        -- exit code 2
        ");
        let by_flag = cluster.maint(["release", &node, "--force", "--lock-id", id]);
        by_flag.fails(2);
    });
}

#[test]
fn releasing_anothers_lock_needs_a_confirmation() {
    on_one("release-force", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["acquire", &node, "-m", "disk"])
            .holder("bob@laptop")
            .succeeds();
        assert_snapshot!(cluster.maint(["release", &node, "--force"]).run(), @r#"
        $ kubectl maint release worker-1 --force
        -- stderr
        context [context], server [server], user [user]: 1 node
          node/worker-1 is locked by bob@laptop since [time] until [time]: "disk"
        error: not confirmed: there is no terminal for a prompt
        hint: add --yes to confirm
        -- exit code 6
        "#);
        assert_snapshot!(cluster.maint(["release", &node, "--force", "--dry-run"]).run(), @"
        $ kubectl maint release worker-1 --force --dry-run
        node/worker-1 released (was locked by bob@laptop) (dry run)
        -- stderr
        without --dry-run, this asks first: Release the lock of bob@laptop on node/worker-1?
        -- exit code 0
        ");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
        assert_snapshot!(
            cluster.maint(["release", &node, "--force", "--yes", "-m", "he is away"]).run(),
            @r#"
            $ kubectl maint release worker-1 --force --yes -m "he is away"
            node/worker-1 released (was locked by bob@laptop)
            -- stderr
            Warning: bob@laptop may still act on node/worker-1 until [time] at the latest
            -- exit code 0
            "#
        );
        assert_eq!(holder_of(cluster, &node), None);
        assert_snapshot!(
            events_of(cluster, &node),
            @r#"Warning MaintenanceLockTakenOver: alice@bastion released the maintenance lock of bob@laptop: "he is away""#
        );
    });
}

#[test]
fn nodes_from_standard_input_cannot_be_confirmed_by_a_prompt() {
    on_one("release-stdin", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        let run = cluster
            .maint(["release", "--nodes-from", "-", "--force"])
            .stdin(format!("node/{node}\n"))
            .run();
        assert_snapshot!(run, @"
        $ kubectl maint release --nodes-from - --force
        -- stderr
        context [context], server [server], user [user]: 1 node
          node/worker-1 is locked by bob@laptop since [time] until [time]
        error: not confirmed: --nodes-from - uses standard input, so there is no prompt
        hint: add --yes to confirm
        -- exit code 6
        ");
    });
}

#[test]
fn all_nodes_need_a_confirmation() {
    in_memory("release-every", |cluster| {
        let node = cluster.node("worker-1");
        let me = cluster.name("me");
        let release = || cluster.maint(["release", "--all"]).holder(&me).run();
        assert_snapshot!(release(), @"
        $ kubectl maint release --all
        -- stderr
        nothing to release: no node is locked
        -- exit code 0
        ");
        cluster.maint(["acquire", &node]).holder(&me).succeeds();
        let run = release();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains(": release all "), "{run}");
    });
}

/// The selection does not name the nodes, and a hold may be meant to last for a week.
#[test]
fn holds_stay_unless_their_nodes_are_named() {
    in_memory("release-holds", |cluster| {
        let [held, locked] = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        cluster.maint(["hold", &held, "-m", "vendor"]).succeeds();
        cluster.maint(["acquire", &locked]).succeeds();
        assert_snapshot!(cluster.maint(["release", "--all", "--yes"]).run(), @"
        $ kubectl maint release --all --yes
        node/worker-2 released
        -- stderr
        your hold on node/worker-1 stays; to end it, run `kubectl maint unhold worker-1`
        -- exit code 0
        ");
        let forced = ["release", "--all", "--force", "--yes"];
        cluster.maint(forced).succeeds();
        cluster.maint(["release", "-l", "!none"]).succeeds();
        assert_eq!(
            holder_of(cluster, &held).as_deref(),
            Some("kubeadm:alice@bastion")
        );
        cluster.maint(["release", &held]).succeeds();
        assert_eq!(holder_of(cluster, &held), None);
    });
}

#[test]
fn all_locks_are_taken_over_after_one_question() {
    in_memory("release-all-force", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        cluster.maint(["acquire", &nodes[0]]).succeeds();
        let bob = cluster.maint(["acquire", &nodes[1], "-m", "disk"]);
        bob.holder("bob@laptop").succeeds();
        let release = ["release", "--all", "--force"];
        cluster.maint(release).fails(6);
        assert_snapshot!(cluster.maint(release).arg("--dry-run").run(), @"
        $ kubectl maint release --all --force --dry-run
        node/worker-1 released (dry run)
        node/worker-2 released (was locked by bob@laptop) (dry run)
        -- stderr
        without --dry-run, this asks first: Release all 2 nodes?
        2 of 2 nodes would be free (dry run)
        -- exit code 0
        ");
        let hold = ["hold", "--all", "--take-over", "-m", "fire", "--dry-run"];
        let run = cluster.maint(hold).run();
        assert_eq!(run.stderr.matches("this asks first").count(), 1, "{run}");
        cluster.maint(release).arg("--yes").succeeds();
        assert!(nodes.iter().all(|node| holder_of(cluster, node).is_none()));
    });
}

#[test]
fn mine_without_any_lock_is_no_error() {
    on_one("release-none", |cluster| {
        // The holder is unique to this test, because other tests share the server.
        let me = cluster.name("me");
        let mine = |words: &[&str]| cluster.maint(words).arg("--mine").holder(&me).run();
        assert_snapshot!(mine(&["release"]), @"
        $ kubectl maint release --mine
        -- stderr
        nothing to release: you (me) have no lock
        -- exit code 0
        ");
        assert_eq!(mine(&["release", "-q"]).code, 0);
        assert_eq!(mine(&["unhold"]).code, 0);
        let json: serde_json::Value =
            serde_json::from_str(&mine(&["release", "-o", "json"]).stdout).expect("JSON");
        assert_eq!(json["items"], json!([]));
        assert_eq!(mine(&["renew"]).code, 1, "it has to keep a lock");
    });
}

#[test]
fn it_takes_two_requests() {
    on_real("release-requests", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        let run = cluster.maint(["release", "-v6", &node]).succeeds();
        assert_eq!(requests(&run), ["GET", "PATCH"], "{run}");
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        let run = cluster
            .maint(["release", "-v6", &node, "--force", "--yes"])
            .succeeds();
        assert_eq!(
            requests(&run),
            ["GET", "PATCH", "POST"],
            "and an Event: {run}"
        );
    });
}

#[test]
fn a_refusal_comes_before_any_prompt() {
    on_one("release-deleting", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        let lease = format!("{LEASES}/{node}");
        let keep = |finalizers| json!({"metadata": {"finalizers": finalizers}});
        cluster.patch(&lease, &keep(json!(["example.com/kept"])));
        cluster.delete(&lease);
        assert_snapshot!(cluster.maint(["release", &node, "--force"]).run(), @"
        $ kubectl maint release worker-1 --force
        -- stderr
        error: cannot release node/worker-1: its Lease is being deleted; locked by bob@laptop (since [time], until [time], [length] left, being deleted)
        hint: retry when the Lease is gone; check with `kubectl maint status worker-1`
        -- exit code 1
        ");
        cluster.patch(&lease, &keep(json!([])));
    });
}

#[test]
fn the_next_holder_sees_the_note_and_the_old_one_who_released_the_lock() {
    on_both("release-note", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let run = |words: &[&str], holder: &str| cluster.maint(words).holder(holder).run();
        let alice = "alice@bastion";
        assert_eq!(run(&["acquire", &node], alice).code, 0);
        let note = ["release", &node, "-m", "fan 2 is loud"];
        assert_eq!(run(&note, alice).code, 0);
        assert_snapshot!(run(&note, alice), @r#"
        $ kubectl maint release worker-1 -m "fan 2 is loud"
        node/worker-1 already free
        -- stderr
        Warning: node/worker-1 was already free: -m was not stored
        -- exit code 0
        "#);
        assert_snapshot!(run(&["acquire", &node], "bob@laptop"), @r#"
        $ kubectl maint acquire worker-1
        node/worker-1 acquired by bob@laptop until [time] (30m)
        -- stderr
        alice@bastion left a note on node/worker-1: "fan 2 is loud"
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        "#);
        let force = [
            "release",
            &node,
            "--force",
            "--yes",
            "-m",
            "bob is on holiday",
        ];
        assert_eq!(run(&force, alice).code, 0);
        assert_snapshot!(run(&["renew", &node], "bob@laptop"), @r#"
        $ kubectl maint renew worker-1
        -- stderr
        error: cannot renew node/worker-1: it is free: your lock was released by alice@bastion at [time]: "bob is on holiday"
        hint: acquire it with `kubectl maint acquire worker-1 -m WHY`
        -- exit code 3
        "#);
    });
}

/// Other clients may write any time, also one that can't be parsed.
#[test]
fn the_end_of_a_released_lock_may_be_unreadable() {
    on_one("release-unreadable", |cluster| {
        let node = cluster.node("worker-1");
        let spec = json!({
            "holderIdentity": "bob@laptop",
            "acquireTime": ago(60),
            "renewTime": "9999-12-31T23:59:59.000000Z",
            "leaseDurationSeconds": 3600,
        });
        cluster.lease(&node, &spec);
        let force = ["release", &node, "--force", "--yes", "-m", "he is away"];
        assert_snapshot!(cluster.maint(force).run(), @r#"
        $ kubectl maint release worker-1 --force --yes -m "he is away"
        node/worker-1 released (was locked by bob@laptop)
        -- stderr
        Warning: bob@laptop may still be working on node/worker-1: tell them that their lock has ended
        -- exit code 0
        "#);
    });
}
