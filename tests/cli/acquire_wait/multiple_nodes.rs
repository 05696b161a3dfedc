//! `acquire --wait` with multiple nodes: nothing is locked while it waits.

use std::thread;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use super::{bob, held_by_bob};
use crate::support::{Cluster, holder_of, on_both, on_one, requests};

fn free(cluster: &Cluster, short: &str) -> String {
    let node = cluster.node(short);
    cluster.lease(&node, &json!({}));
    node
}

#[test]
fn none_is_locked_while_it_waits() {
    on_one("turn-all", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let run = cluster
            .maint(["acquire", &second, &first, "--wait"])
            .until_it_says("waiting for node/");
        assert_eq!(holder_of(cluster, &first), None);
        bob(cluster, &["release", &second]).succeeds();
        // Results are printed in the order of the arguments.
        assert_snapshot!(run.ends(), @r#"
        $ kubectl maint acquire worker-2 worker-1 --wait
        node/worker-2 acquired by alice@bastion until [time] (30m)
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-2 worker-1
          kubectl maint renew worker-2 worker-1
          kubectl maint hold worker-2 worker-1 -m WHY
        2 of 2 nodes locked
        -- exit code 0
        "#);
    });
}

#[test]
fn nodes_read_at_first_are_not_read_again() {
    on_one("turn-requests", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| free(cluster, short));
        let run = cluster
            .maint(["acquire", "--wait", "-v6"])
            .args(&nodes)
            .run();
        assert_eq!(run.code, 0, "{run}");
        // Each node is acquired by one write and renewed by a second one, which is the check at the
        // end.
        let (reads, writes) = (["GET"; 4], ["PATCH"; 6]);
        assert_eq!(requests(&run), [&reads[..], &writes].concat(), "{run}");
    });
}

#[test]
fn overlapping_callers_never_wait_for_each_other() {
    const ROUNDS: usize = 5;
    on_both("turn-overlap", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| free(cluster, short));
        let one = [&nodes[0], &nodes[1], &nodes[2]];
        let other = [&nodes[2], &nodes[1], &nodes[0]];
        thread::scope(|scope| {
            for (holder, nodes) in [("alice@bastion", one), ("bob@laptop", other)] {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        for verb in [&["acquire", "--wait", "--timeout", "60s"][..], &["release"]] {
                            cluster.maint(verb).args(nodes).holder(holder).succeeds();
                        }
                    }
                });
            }
        });
        for node in &nodes {
            assert_eq!(holder_of(cluster, node), None);
        }
    });
}

#[test]
fn a_timeout_ends_the_wait() {
    on_one("turn-timeout", |cluster| {
        let first = free(cluster, "worker-1");
        let second = held_by_bob(cluster, "worker-2");
        let acquire = cluster.maint(["acquire", "--wait", "--timeout", "1s"]);
        assert_snapshot!(acquire.args([&first, &second]).run(), @r#"
        $ kubectl maint acquire --wait --timeout 1s worker-1 worker-2
        -- stderr
        waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
        error: timed out after 1s waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: to wait longer, increase --timeout or remove it
        0 of 2 nodes acquired
        -- exit code 4
        "#);
        assert_eq!(holder_of(cluster, &first), None);
    });
}

#[test]
fn ctrl_c_ends_the_wait() {
    for (prefix, signal) in [("turn-int", Signal::INT), ("turn-quit", Signal::QUIT)] {
        on_one(prefix, |cluster| {
            let first = free(cluster, "worker-1");
            let second = held_by_bob(cluster, "worker-2");
            let run = cluster
                .maint(["acquire", &first, &second, "--wait"])
                .until_it_says("waiting for node/");
            run.is_sent(signal);
            assert_snapshot!(run.ends(), @r#"
            $ kubectl maint acquire worker-1 worker-2 --wait
            -- stderr
            waiting for node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left); free when released, or at [time] unless renewed
            error: interrupted
            0 of 2 nodes acquired
            -- exit code 130
            "#);
            assert_eq!(holder_of(cluster, &first), None);
        });
    }
}

/// Before the command of `with` runs, there is no process to forward a signal to.
#[test]
fn a_signal_before_the_command_runs_ends_the_wait() {
    for (prefix, signal) in [
        ("turn-with-int", Signal::INT),
        ("turn-with-quit", Signal::QUIT),
    ] {
        on_one(prefix, |cluster| {
            let first = free(cluster, "worker-1");
            let second = held_by_bob(cluster, "worker-2");
            let line = ["with", &first, &second, "--wait", "--", "echo", "ran"];
            let run = cluster.maint(line).until_it_says("waiting for node/");
            run.is_sent(signal);
            let run = run.ends();
            assert_eq!((run.stdout.as_str(), run.code), ("", 130), "{run}");
            assert_eq!(holder_of(cluster, &first), None);
        });
    }
}

#[test]
fn an_unknown_node_is_not_waited_for() {
    on_one("turn-unknown", |cluster| {
        let first = held_by_bob(cluster, "worker-1");
        let unknown = cluster.name("worker-9");
        let run = cluster.maint(["acquire", &first, &unknown, "--wait"]).run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("(NotFound)"), "{run}");
    });
}
