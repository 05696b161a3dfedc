//! How `with` locks the nodes, and what prevents that.

use std::slice;

use insta::assert_snapshot;
use serde_json::Value;

use super::with;
use crate::support::{Cluster, holder_of, on_both, on_one};

#[test]
fn a_node_of_somebody_else_is_left_alone() {
    on_one("with-held", |cluster| {
        let node = cluster.node("worker-1");
        let nodes = slice::from_ref(&node);
        let bob = ["acquire", &node, "-m", "disk errors"];
        cluster.maint(bob).holder("bob@laptop").succeeds();
        assert_snapshot!(with(cluster, nodes, "echo ran").run(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "echo ran"
        -- stderr
        error: cannot acquire node/worker-1: locked by bob@laptop: "disk errors" (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint with worker-1 --wait -- COMMAND`
        -- exit code 3
        "#);
        let run = cluster
            .maint(["with", &node, "-E", "75", "--", "echo", "ran"])
            .run();
        assert_eq!((run.code, &run.stdout[..]), (75, ""), "{run}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn ones_own_lock_is_refused_and_says_how_to_go_on() {
    on_one("with-own", |cluster| {
        let node = cluster.node("worker-1");
        let nodes = slice::from_ref(&node);
        cluster.maint(["acquire", &node]).succeeds();
        assert_snapshot!(with(cluster, nodes, "echo ran").run(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "echo ran"
        -- stderr
        error: cannot acquire node/worker-1: you already hold this lock as alice@bastion (since [time], until [time], [length] left)
        hint: work under it with `kubectl maint with worker-1 --reentry -- COMMAND`
        -- exit code 3
        "#);
        cluster.maint(["hold", &node, "-m", "bad DIMM"]).succeeds();
        let run = with(cluster, nodes, "echo ran").run();
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains("--reentry -- COMMAND`\n"), "{run}");
    });
}

/// The hold is read again after the wait for the other node.
#[test]
fn a_hold_that_ended_during_the_wait_is_not_entered() {
    on_both("with-hold-ended", |cluster| {
        let (held, other) = (cluster.node("worker-1"), cluster.node("worker-2"));
        let bob = |words: &[&str]| cluster.maint(words).holder("bob@laptop").succeeds();
        cluster.maint(["hold", &held, "-m", "bad DIMM"]).succeeds();
        bob(&["acquire", &other]);
        let line = ["with", &held, &other, "--reentry", "--wait"];
        let with = cluster.maint(line).args(["--", "echo", "ran"]);
        let waiting = with.until_it_says("waiting for node/");
        cluster.maint(["unhold", &held]).succeeds();
        let carol = cluster.maint(["acquire", &held]).holder("carol@desk");
        carol.succeeds();
        bob(&["release", &other]);
        let run = waiting.ends();
        assert_eq!((run.code, &run.stdout[..]), (3, ""), "{run}");
        let refused = format!("node/{held}: locked by carol@desk ");
        assert!(run.stderr.contains(&refused), "{run}");
        assert_eq!(holder_of(cluster, &other), None);
    });
}

/// The Lease's holder and its `acquisition` annotation.
fn acquisition(cluster: &Cluster, node: &str) -> (String, String) {
    let lease = cluster.lease_of(node);
    let mark = &lease["metadata"]["annotations"]["kubectl-maint.dev/acquisition"];
    (
        lease["spec"]["holderIdentity"].to_string(),
        mark.to_string(),
    )
}

#[test]
fn an_existing_lock_is_used_and_left_unchanged() {
    on_one("with-again", |cluster| {
        let node = cluster.node("worker-1");
        for (verb, found_it) in [
            (
                "acquire",
                "already locked by you: renewed, and not released",
            ),
            ("hold", "already on hold by you, and not released"),
        ] {
            cluster.maint([verb, &node, "-m", "new kernel"]).succeeds();
            let found = acquisition(cluster, &node);
            let again = ["with", &node, "--reentry", "-m", "unread", "--"];
            let run = cluster
                .maint(again)
                .args(["sh", "-c", "echo $MAINT_HOLDER"])
                .run();
            assert_eq!(run.stdout.trim_end(), "alice@bastion");
            let found_it = format!("{found_it} at the end; running on this machine: sh");
            assert!(run.stderr.contains(&found_it), "{run}");
            assert_eq!(acquisition(cluster, &node), found);
        }
        cluster.maint(["unhold", &node]).succeeds();
        // If there is no lock, --reentry acquires one, and releases it at the end.
        cluster
            .maint(["with", &node, "--reentry", "--", "true"])
            .succeeds();
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn an_existing_lock_gets_the_requested_options() {
    on_both("with-enter", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node, "-m", "old"]).succeeds();
        let enter = [
            "with",
            &node,
            "--reentry",
            "-m",
            "new kernel",
            "--ticket=T-1",
        ];
        let enter = |more: &[&str]| {
            let run = cluster.maint(enter).arg("--cordon").args(more);
            run.args(["--", "true"]).succeeds()
        };
        let found = || {
            let notes = cluster.lease_of(&node)["metadata"]["annotations"].clone();
            let notes =
                ["reason", "ticket"].map(|key| notes[format!("kubectl-maint.dev/{key}")].clone());
            let node = cluster.get(&format!("/api/v1/nodes/{node}"));
            (notes, node["spec"]["unschedulable"] == true)
        };
        let before = found();
        assert_eq!(before, (["old".into(), Value::Null], false));
        enter(&["--dry-run"]);
        assert_eq!(found(), before);
        let run = enter(&[]);
        let says = "worker-1 labeled and cordoned until the lock ends";
        assert!(run.stderr.contains(says), "{run}");
        assert_eq!(found(), (["new kernel".into(), "T-1".into()], true));
        let run = cluster.maint(["release", &node]).succeeds();
        assert!(run.stderr.contains("worker-1 uncordoned"), "{run}");
    });
}

#[test]
fn an_inherited_fencing_number_is_not_used_for_an_existing_lock() {
    on_one("with-fenced", |cluster| {
        let node = cluster.node("worker-1");
        let acquired = cluster
            .maint(["acquire", &node, "-o", "lock-id"])
            .succeeds();
        let script = "echo ${MAINT_FENCING_NUMBER-none} $MAINT_LOCK_ID";
        let again = ["with", &node, "--reentry", "--", "sh", "-c", script];
        let id = acquired.stdout.trim_end();
        // The lock id may come from a script, and the number from an outer `with`.
        let run = cluster
            .maint(again)
            .env("MAINT_LOCK_ID", id)
            .env("MAINT_FENCING_NUMBER", "7")
            .succeeds();
        assert_eq!(run.stdout.trim_end(), format!("none {id}"));
    });
}

#[test]
fn two_of_the_same_user_exclude_each_other() {
    on_one("with-twice", |cluster| {
        let node = cluster.node("worker-1");
        let nodes = slice::from_ref(&node);
        let mut first = with(cluster, nodes, "echo on; exec sleep 1000").start();
        assert_eq!(first.line(), "on");
        assert_snapshot!(with(cluster, nodes, "echo ran").run(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "echo ran"
        -- stderr
        error: cannot acquire node/worker-1: locked by alice@bastion/with-[process] (since [time], until [time], [length] left, renewed while its command runs)
        hint: a `with` command of alice@bastion has the lock; exit its command if it still runs, or wait for the lock with `kubectl maint with worker-1 --wait -- COMMAND`
        -- exit code 3
        "#);
        first.interrupt();
        assert_eq!(first.ends().code, 130);
    });
}

#[test]
fn several_nodes_are_locked_all_or_none() {
    on_both("with-several", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        cluster
            .maint(["acquire", &nodes[2]])
            .holder("bob@laptop")
            .succeeds();
        let run = with(cluster, &nodes, "echo ran").run();
        assert_eq!((run.code, &*run.stdout), (3, ""), "{run}");
        assert_eq!(holder_of(cluster, &nodes[0]), None);
        let script = "echo ran for $MAINT_NODES";
        assert_snapshot!(with(cluster, &nodes[..2], script).run(), @r#"
        $ kubectl maint with worker-1 worker-2 -- /bin/sh -c "echo ran for $MAINT_NODES"
        ran for worker-1 worker-2
        -- stderr
        node/worker-1, node/worker-2 locked until the command ends, by alice@bastion/with-[process]; running on this machine: /bin/sh -c 'echo ran for $MAINT_NODES'
        lease/worker-1 and 1 more created
        node/worker-1, node/worker-2 released
        -- exit code 0
        "#);
    });
}

#[test]
fn a_dry_run_says_what_would_be_locked_and_run() {
    on_one("with-dry", |cluster| {
        let node = cluster.node("worker-1");
        let line = [
            "with",
            &node,
            "--dry-run",
            "--",
            "ssh",
            "worker-1",
            "sudo reboot",
        ];
        assert_snapshot!(cluster.maint(line).run(), @r#"
        $ kubectl maint with worker-1 --dry-run -- ssh worker-1 "sudo reboot"
        node/worker-1 would be locked; would run on this machine: ssh worker-1 'sudo reboot' (dry run)
        -- exit code 0
        "#);
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn usage_errors_have_a_code_of_their_own() {
    let cluster = Cluster::nowhere();
    // The command's own code can be 1 or 2, so usage errors use 125.
    for line in ["with worker-1", "with Worker -- true"] {
        let run = cluster.maint(line.split(' ')).run();
        assert_eq!(run.code, 125, "{run}");
    }
    let short = ["with", "worker-1", "--lease-duration", "31s", "--", "true"];
    assert_snapshot!(cluster.maint(short).run(), @"
    $ kubectl maint with worker-1 --lease-duration 31s -- true
    -- stderr
    error: --lease-duration 31s is too short: --request-timeout 10s and --grace 10s need at least 32s
    hint: use a shorter --request-timeout or --grace, or a longer --lease-duration (at most 1h)
    -- exit code 125
    ");
    assert_eq!(
        cluster.maint(["with", "worker-1", "--", "true"]).run().code,
        125
    );
}

#[test]
fn a_node_that_is_released_is_waited_for() {
    on_one("with-wait", |cluster| {
        let node = cluster.node("worker-1");
        let bob = |verb: &str| cluster.maint([verb, &*node]).holder("bob@laptop");
        bob("acquire").succeeds();
        let line = ["with", &node, "--wait", "--", "echo", "ran"];
        let run = cluster.maint(line).until_it_says("waiting for node/");
        bob("release").succeeds();
        assert_snapshot!(run.ends(), @"
        $ kubectl maint with worker-1 --wait -- echo ran
        ran
        -- stderr
        waiting for node/worker-1: locked by bob@laptop (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        node/worker-1 locked until the command ends, by alice@bastion/with-[process]; running on this machine: echo ran
        node/worker-1 released
        -- exit code 0
        ");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn a_wait_can_time_out() {
    on_one("with-vain", |cluster| {
        let node = cluster.node("worker-1");
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        let line = ["with", &node, "--wait", "--timeout", "0"];
        let run = |more: &[&str]| {
            cluster
                .maint(line)
                .args(more)
                .args(["--", "echo", "ran"])
                .run()
        };
        assert_eq!(run(&[]).code, 4);
        assert_eq!(run(&["-E", "75"]).code, 75);
    });
}

#[test]
fn ones_own_lock_is_not_waited_for() {
    on_one("with-self", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let line = ["with", &node, "--wait", "--", "echo", "ran"];
        let run = cluster.maint(line).run();
        assert_eq!(run.code, 3, "{run}");
        cluster.maint(["release", &node]).succeeds();
        // An inner `with` does not wait for the lock of the outer one either, which has another identity.
        let inner = format!("$PLUGIN with {node} --wait -- echo ran");
        assert_snapshot!(with(cluster, slice::from_ref(&node), &inner).run(), @r#"
        $ kubectl maint with worker-1 -- /bin/sh -c "$PLUGIN with worker-1 --wait -- echo ran"
        -- stderr
        node/worker-1 locked until the command ends, by alice@bastion/with-[process]; running on this machine: /bin/sh -c '$PLUGIN with worker-1 --wait -- echo ran'
        error: cannot acquire node/worker-1: you already hold this lock as alice@bastion/with-[process] (since [time], until [time], [length] left, renewed while its command runs)
        hint: work under it with `kubectl maint with worker-1 --reentry --holder alice@bastion/with-[process] -- COMMAND`
        node/worker-1 released
        -- exit code 3
        "#);
        let inner = format!(
            "$PLUGIN with {node} -q --holder $MAINT_HOLDER --reentry -- sh -c 'echo $MAINT_LOCK_ID'; \
             echo $MAINT_LOCK_ID"
        );
        let run = with(cluster, slice::from_ref(&node), &inner).succeeds();
        let ids: Vec<&str> = run.stdout.lines().collect();
        assert!(matches!(ids[..], [inner, outer] if inner == outer), "{run}");
    });
}

/// The command uses this identity for its own node, whatever its default identity is.
#[test]
fn the_command_can_act_as_its_holder() {
    on_one("with-as", |cluster| {
        let node = cluster.node("worker-1");
        let inner = r#"set -e; export KUBECTL_MAINT_HOLDER=root@vm
            "$PLUGIN" with $MAINT_NODE --reentry -q --holder "$MAINT_HOLDER" -- \
                sh -ec '"$PLUGIN" verify --holder "$MAINT_HOLDER"; echo "as $MAINT_HOLDER"'
        "#;
        // Each verb fits its kind of lock. The `unhold` is a dry run, because ending the hold would end this command.
        let of_a_lease = r#""$PLUGIN" renew $MAINT_NODE --holder "$MAINT_HOLDER""#;
        let of_a_hold = r#""$PLUGIN" unhold $MAINT_NODE --holder "$MAINT_HOLDER" --dry-run"#;
        for (verb, flags, own) in [
            (None, &[][..], of_a_lease),
            (Some("acquire"), &["--reentry"], of_a_lease),
            (Some("hold"), &["--reentry"], of_a_hold),
        ] {
            if let Some(verb) = verb {
                cluster.maint([verb, &node, "-m", "new kernel"]).succeeds();
            }
            let with = cluster.maint(["with", &node]).args(flags);
            let script = format!("{inner}{own}");
            let run = with.args(["--", "/bin/sh", "-c", &script]).succeeds();
            assert!(run.stdout.contains("as alice@bastion"), "{run}");
        }
    });
}
