//! Exit codes for a conflict and a lost lock.

use crate::support::Treatment::{Keep, Pass};
use crate::support::{Cluster, holder_of, in_memory, on_one};

/// Creates two nodes, the second locked by bob.
fn nodes(cluster: &Cluster) -> [String; 2] {
    let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
    let bob = cluster.maint(["acquire", &nodes[1]]).holder("bob@laptop");
    bob.succeeds();
    nodes
}

#[test]
fn the_one_for_a_conflict_cannot_be_zero() {
    in_memory("codes-zero", |cluster| {
        let line = ["with", "worker-1", "-E", "0", "--", "true"];
        cluster.maint(line).fails(125);
    });
}

#[test]
fn a_conflict_has_its_own_and_that_of_the_command_is_unchanged() {
    on_one("codes-conflict", |cluster| {
        let [free, held] = nodes(cluster);
        let with = |words: &[&str]| {
            let line = ["with", "-q", "-E", "75"];
            cluster.maint(line).args(words).run().code
        };
        assert_eq!(with(&[&held, "--", "true"]), 75);
        assert_eq!(with(&[&free, &held, "--", "true"]), 75);
        assert_eq!(with(&[&held, "--wait", "--timeout=0", "--", "true"]), 75);
        for code in ["0", "3", "4", "5", "75"] {
            let script = format!("exit {code}");
            let ended = with(&[&free, "--", "/bin/sh", "-c", &script]);
            assert_eq!(ended.to_string(), code);
        }
        // These are not conflicts: a usage error, and a command that can't be started.
        assert_eq!(with(&["Worker", "--", "true"]), 125);
        assert_eq!(with(&[&free, "--", "no-such-command"]), 127);
    });
}

#[test]
fn a_lock_that_is_lost_before_all_are_locked_is_lost() {
    on_one("codes-lost", |cluster| {
        let [free, held] = nodes(cluster);
        cluster
            .maint(["release", &held])
            .holder("bob@laptop")
            .succeeds();
        let lost = |more: &[&str]| {
            let proxy = cluster.proxy_for_writes(&[Pass, Keep]);
            let line = ["with", &free, &held, "--wait"];
            let run = cluster.maint(line).args(more).args(["--", "echo", "ran"]);
            let (run, kept) = proxy.holds_up(run);
            let force = ["release", &free, "--force", "--yes", "-m", "alice is away"];
            cluster.maint(force).holder("carol@desk").succeeds();
            assert_eq!(kept.passes(), 200);
            let run = run.ends();
            assert_eq!(run.stdout, "", "{run}");
            assert!(run.stderr.contains(": released by carol@desk"), "{run}");
            run.code
        };
        assert_eq!(lost(&[]), 5);
        for node in [&free, &held] {
            assert_eq!(holder_of(cluster, node), None);
        }
    });
}
