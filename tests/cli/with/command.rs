//! The environment and output of the command, and what others see while it runs.

use std::slice;

use insta::assert_snapshot;

use super::with;
use crate::support::{Cluster, LEASES, holder_of, on_both, on_one};

#[test]
fn it_runs_on_this_machine_while_the_node_is_locked() {
    on_both("with-run", |cluster| {
        let node = cluster.node("worker-1");
        let status = format!("$PLUGIN status {node} --no-headers");
        // The first line names the locked node and the machine. The last line says that the node
        // was released.
        assert_snapshot!(
            cluster
                .maint(["with", &node, "-m", "new kernel", "--", "/bin/sh", "-c", "echo done"])
                .run(),
            @r#"
        $ kubectl maint with worker-1 -m "new kernel" -- /bin/sh -c "echo done"
        done
        -- stderr
        node/worker-1 locked until the command ends, by alice@bastion/with-[process]: "new kernel"; running on this machine: /bin/sh -c 'echo done'
        lease/worker-1 created
        node/worker-1 released
        -- exit code 0
        "#
        );
        assert_eq!(holder_of(cluster, &node), None);
        // Others see the lock while the command runs.
        let run = cluster
            .maint([
                "with",
                &node,
                "-q",
                "-m",
                "disk errors",
                "--",
                "/bin/sh",
                "-c",
                &status,
            ])
            .succeeds();
        assert!(run.stdout.contains("alice@bastion/with-"), "{run}");
        assert!(run.stdout.contains("disk errors"), "{run}");
        assert_eq!(run.stderr, "");
    });
}

#[test]
fn its_code_is_passed_on() {
    on_one("with-code", |cluster| {
        let node = cluster.node("worker-1");
        let nodes = slice::from_ref(&node);
        for (script, code) in [("exit 3", 3), ("kill -KILL $$", 137)] {
            assert_eq!(with(cluster, nodes, script).run().code, code, "{script}");
        }
        let not_there = ["with", &node, "-q", "--", "no-such-command"];
        assert_snapshot!(cluster.maint(not_there).run(), @r#"
        $ kubectl maint with worker-1 -q -- no-such-command
        -- stderr
        error: cannot run no-such-command: not found; nothing was changed
        hint: give the path of an executable file, or the name of a program in PATH
        -- exit code 127
        "#);
        assert_eq!(
            cluster.maint(["with", &node, "-q", "--", "/"]).run().code,
            126
        );
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn the_command_gets_variables_of_the_lock() {
    on_one("with-env", |cluster| {
        let node = cluster.node("worker-1");
        let script = r#"env | grep ^MAINT_ | sort"#;
        let run = with(cluster, slice::from_ref(&node), script)
            .env("MAINT_NODE", "of an outer one")
            .env("MAINT_LOCK_ID", "of an outer one")
            .succeeds();
        let lease = cluster.lease_of(&node);
        let said = |name: &str| {
            let value = run.stdout.lines().find_map(|line| line.strip_prefix(name));
            value.unwrap_or_else(|| panic!("{name}: {run}")).to_owned()
        };
        assert_eq!(said("MAINT_NODES="), node);
        assert_eq!(said("MAINT_NODE="), node);
        assert_eq!(said("MAINT_LEASE_UID="), lease["metadata"]["uid"]);
        assert_eq!(
            said("MAINT_TRANSITIONS="),
            lease["spec"]["leaseTransitions"].to_string()
        );
        let (uid, transitions) = (said("MAINT_LEASE_UID="), said("MAINT_TRANSITIONS="));
        let id = said("MAINT_LOCK_ID=");
        assert!(id.starts_with(&format!("{uid}.{transitions}.")), "{run}");
        let last = &lease["metadata"]["annotations"]["kubectl-maint.dev/last-holder"];
        assert_eq!(said("MAINT_HOLDER="), *last);
        assert!(
            said("MAINT_HOLDER=").starts_with("alice@bastion/with-"),
            "{run}"
        );
        let version = lease["metadata"]["resourceVersion"].as_str();
        let version: u64 = version.and_then(|v| v.parse().ok()).expect("a number");
        let fencing: u64 = said("MAINT_FENCING_NUMBER=").parse().expect("a number");
        assert!(fencing < version, "the release came later: {run}");
    });
}

#[test]
fn fencing_numbers_rise() {
    on_both("with-fencing", |cluster| {
        let node = cluster.node("worker-1");
        let number = || -> u64 {
            let script = "echo $MAINT_FENCING_NUMBER";
            let run = with(cluster, slice::from_ref(&node), script).succeeds();
            run.stdout.trim().parse().expect("a number")
        };
        let first = number();
        // Another lock in between makes no difference.
        cluster.maint(["acquire", &node]).succeeds();
        cluster.maint(["release", &node]).succeeds();
        let second = number();
        cluster.delete(&format!("{LEASES}/{node}"));
        let third = number();
        assert!(first < second && second < third, "{first} {second} {third}");
    });
}

#[test]
fn several_nodes_are_printed_in_pairs() {
    on_one("with-envs", |cluster| {
        let nodes = ["worker-2", "worker-1"].map(|short| cluster.node(short));
        let script = "env | grep ^MAINT_ | sort";
        assert_snapshot!(
            with(cluster, &nodes, script)
                .env("MAINT_NODE", "of an outer one")
                .env("MAINT_FENCING_NUMBER", "of an outer one")
                .run(),
            @r#"
        $ kubectl maint with worker-2 worker-1 -- /bin/sh -c "env | grep ^MAINT_ | sort"
        MAINT_HOLDER=alice@bastion/with-[process]
        MAINT_LOCK_ID=worker-2=[lock-id] worker-1=[lock-id]
        MAINT_NODES=worker-2 worker-1
        -- stderr
        node/worker-2, node/worker-1 locked until the command ends, by alice@bastion/with-[process]; running on this machine: /bin/sh -c 'env | grep ^MAINT_ | sort'
        lease/worker-2 and 1 more created
        node/worker-2, node/worker-1 released
        -- exit code 0
        "#
        );
    });
}

#[test]
fn its_words_and_streams_are_left_as_they_are() {
    on_one("with-words", |cluster| {
        let node = cluster.node("worker-1");
        let words = ["<%s>", "", "--", "-q", "a b", "$(x)", "--token"];
        let run = cluster
            .maint(["with", &node, "-q", "--", "printf"])
            .args(words)
            .succeeds();
        assert_eq!(run.stdout, "<><--><-q><a b><$(x)><--token>");
        let run = cluster
            .maint(["with", &node, "--", "cat"])
            .stdin("a line\nno end")
            .succeeds();
        assert_eq!(run.stdout, "a line\nno end");
    });
}

/// The holder of `with` also includes the process id.
#[test]
fn a_holder_with_no_room_for_the_process_is_refused() {
    let nowhere = Cluster::nowhere();
    let holder = "a".repeat(245);
    let run = nowhere
        .maint(["with", "worker-1", "--", "true"])
        .holder(&holder)
        .run();
    let said = "error: a holder identity must not be longer than 253 bytes\nhint: choose another name with --holder\n";
    assert!(run.stderr.contains(said), "{run}");
    assert_eq!(run.code, 125, "{run}");
}

#[test]
fn describe_inside_it_says_how_to_release_the_lock() {
    on_one("command-describe", |cluster| {
        let node = cluster.node("worker-1");
        let describe = "$PLUGIN describe node $MAINT_NODE";
        let run = with(cluster, &[node], describe).succeeds();
        let said = "You run inside this lock:  exit the command of `with` to release it\n";
        assert!(run.stdout.contains(said), "{run}");
    });
}
