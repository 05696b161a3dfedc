//! `verify`: whether an acquisition still holds.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Cluster, ago, on_both, on_one, requests};

/// Acquires `node` as alice and returns its lock id.
fn acquire(cluster: &Cluster, node: &str) -> String {
    let run = cluster
        .maint(["acquire", node, "-m", "new kernel", "-o", "lock-id"])
        .succeeds();
    run.stdout.trim_end().to_owned()
}

#[test]
fn a_current_acquisition_is_verified() {
    on_both("verify-holds", |cluster| {
        let node = cluster.node("worker-1");
        let id = acquire(cluster, &node);
        cluster
            .maint(["verify", &node, "--lock-id", &id])
            .succeeds();
        let quiet = ["verify", &node, "-q"];
        let run = cluster.maint(quiet).env("MAINT_LOCK_ID", &id).succeeds();
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
        // One request is enough.
        let traced = ["verify", &node, "-v6", "--lock-id", &id];
        assert_eq!(requests(&cluster.maint(traced).run()), ["GET"]);
        // The lock id decides, not the identity of the caller.
        let other = cluster
            .maint(["verify", &node, "--lock-id", &id])
            .holder("bob@laptop");
        other.succeeds();
    });
}

#[test]
fn an_ended_acquisition_is_lost() {
    on_one("verify-over", |cluster| {
        let node = cluster.node("worker-1");
        let id = acquire(cluster, &node);
        let verify = || cluster.maint(["verify", &node, "--lock-id", &id]).run();
        cluster.maint(["release", &node]).succeeds();
        assert_snapshot!(verify(), @"
        $ kubectl maint verify worker-1 --lock-id [lock-id]
        -- stderr
        error: lost the lock on node/worker-1: it is free: your lock was released at [time]
        hint: stop the work that relied on this lock
        -- exit code 3
        ");
        // The holder is the same, but the acquisition is another one.
        acquire(cluster, &node);
        assert_snapshot!(verify(), @r#"
        $ kubectl maint verify worker-1 --lock-id [lock-id]
        -- stderr
        error: lost the lock on node/worker-1: replaced by a newer lock of alice@bastion: "new kernel" (since [time], until [time], [length] left)
        hint: stop the work that relied on this lock
        -- exit code 3
        "#);
    });
}

#[test]
fn a_lock_id_with_a_typo_was_not_replaced() {
    on_one("verify-typo", |cluster| {
        let node = cluster.node("worker-1");
        let id = acquire(cluster, &node) + "x";
        for verb in ["verify", "renew", "release"] {
            let run = cluster.maint([verb, &node, "--lock-id", &id]).run();
            assert_eq!(run.code, 3, "{run}");
            let error = format!(
                "error: the lock id does not match the lock of node/{node}; node/{node} is locked by you as "
            );
            assert!(run.stderr.starts_with(&error), "{run}");
            let hint = "\nhint: if you meant another node, name it; otherwise, stop the work that relied on this lock\n";
            assert!(run.stderr.contains(hint), "{run}");
        }
    });
}

#[test]
fn a_lock_id_is_of_one_node() {
    on_one("verify-other", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let [id, _] = nodes.each_ref().map(|node| acquire(cluster, node));
        let verify = |node: &str| cluster.maint(["verify", node, "--lock-id", &id]).run();
        assert_eq!(verify(&nodes[1]).code, 3);
        assert_snapshot!(verify(&cluster.name("wroker-1")), @"
        $ kubectl maint verify wroker-1 --lock-id [lock-id]
        -- stderr
        error: node/wroker-1 has no Lease: the lock id is for another node, or the Lease was deleted
        hint: if you meant another node, name it; otherwise, stop the work that relied on this lock
        -- exit code 3
        ");
    });
}

#[test]
fn an_expired_acquisition_is_lost_before_others_may_acquire() {
    on_one("verify-expired", |cluster| {
        let node = cluster.node("worker-1");
        let id = acquire(cluster, &node);
        let path = format!("{}/{node}", crate::support::LEASES);
        // The lock has ended, but less than 3 s ago, so others can't acquire it yet.
        let ended = json!({"spec": {"renewTime": ago(31), "leaseDurationSeconds": 30}});
        cluster.patch(&path, &ended);
        assert_snapshot!(cluster.maint(["verify", &node, "--lock-id", &id]).run(), @r#"
        $ kubectl maint verify worker-1 --lock-id [lock-id]
        -- stderr
        error: lost the lock on node/worker-1: it has expired: "new kernel" (since [time], expired at [time], [length] ago)
        hint: stop the work that relied on this lock
        -- exit code 3
        "#);
    });
}

#[test]
fn an_acquisition_is_lost_while_its_lease_is_being_deleted() {
    on_both("verify-deleting", |cluster| {
        let node = cluster.node("worker-1");
        let id = acquire(cluster, &node);
        let path = format!("{}/{node}", crate::support::LEASES);
        let keep = |finalizers| json!({"metadata": {"finalizers": finalizers}});
        cluster.patch(&path, &keep(json!(["example.com/kept"])));
        cluster.delete(&path);
        assert_snapshot!(cluster.maint(["verify", &node, "--lock-id", &id]).run(), @r#"
        $ kubectl maint verify worker-1 --lock-id [lock-id]
        -- stderr
        error: lost the lock on node/worker-1: its Lease is being deleted; locked by alice@bastion: "new kernel" (since [time], until [time], [length] left, being deleted)
        hint: stop the work that relied on this lock
        -- exit code 3
        "#);
        cluster.patch(&path, &keep(json!([])));
    });
}

#[test]
fn under_with_no_arguments_are_needed() {
    on_one("verify-with", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        for nodes in [&nodes[..1], &nodes[..]] {
            let run = cluster
                .maint(["with", "-q"])
                .args(nodes)
                .args(["--", "/bin/sh", "-c", "$PLUGIN verify"])
                .succeeds();
            let verified: Vec<&str> = run
                .stdout
                .lines()
                .filter_map(|line| line.strip_prefix("node/")?.split_once(' '))
                .map(|(node, _)| node)
                .collect();
            assert_eq!(verified, nodes, "{run}");
        }
        // The inherited lock id applies only to its own node.
        let other = cluster.node("other");
        let script = format!("$PLUGIN acquire {other} -q && $PLUGIN release {other}");
        let line = ["with", &nodes[0], "-q", "--", "/bin/sh", "-c", &script];
        cluster.maint(line).succeeds();
    });
}

#[test]
fn without_an_acquisition_there_is_nothing_to_verify() {
    let cluster = Cluster::nowhere();
    assert_snapshot!(cluster.maint(["verify", "worker-1"]).run(), @"
    $ kubectl maint verify worker-1
    -- stderr
    error: missing --lock-id
    hint: add it, or set MAINT_LOCK_ID: it is the output of `acquire -o lock-id`
    -- exit code 2
    ");
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    assert_snapshot!(cluster.maint(["verify"]).env("MAINT_LOCK_ID", id).run(), @"
    $ kubectl maint verify
    -- stderr
    error: missing NODE
    hint: name the node that the lock id is for
    -- exit code 2
    ");
    let other = cluster
        .maint(["verify", "worker-2"])
        .env("MAINT_NODE", "worker-1");
    assert_snapshot!(other.env("MAINT_LOCK_ID", id).run(), @"
    $ kubectl maint verify worker-2
    -- stderr
    error: MAINT_LOCK_ID has no lock id for node/worker-2
    hint: name only nodes with a lock id, or put `env -u MAINT_LOCK_ID` before the command
    -- exit code 2
    ");
}

#[test]
fn locks_that_were_lost_alike_are_counted() {
    on_one("verify-many", |cluster| {
        let ids = ["worker-1", "worker-2", "worker-3", "worker-4", "worker-5"].map(|short| {
            let node = cluster.node(short);
            let id = acquire(cluster, &node);
            let bob = |words: &[&str]| cluster.maint(words).holder("bob@laptop").succeeds();
            bob(&["release", &node, "--force", "--yes"]);
            bob(&["acquire", &node]);
            format!("{node}={id}")
        });
        let verify = cluster
            .maint(["verify"])
            .env("MAINT_LOCK_ID", ids.join(" "));
        assert_snapshot!(verify.run(), @"
        $ kubectl maint verify
        -- stderr
        error: lost the locks on 5 nodes (worker-1, worker-2, worker-3, worker-4, worker-5): replaced by newer locks of bob@laptop (since [time] or later, the last until [time])
        hint: stop the work that relied on these locks
        -- exit code 3
        ");
    });
}
