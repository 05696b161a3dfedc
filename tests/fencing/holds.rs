//! The hold of a fencing: what ends it, and what becomes of it where somebody else does.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Run, Stage};

/// Somebody takes the node over from its holder.
fn takes_over(stage: &Stage, node: &str) {
    let hold = stage.maint(["hold", node, "-m", "mine", "--take-over", "--yes"]);
    hold.holder("mallory@laptop").succeeds();
}

fn fence(stage: &Stage, node: &str) -> Run {
    stage.maint(["fence", node, "--powered-off=dark"]).run()
}

/// It would leave record and taint behind, and nobody would know of the node's lock.
#[test]
fn unhold_leaves_the_hold_of_a_fencing_to_unfence() {
    let (stage, node) = Stage::with_silent_node("not-unheld");
    stage.fence(&node);
    let other = stage.name("worker-2");
    stage.maint(["hold", &other, "-m", "disk"]).succeeds();
    assert_snapshot!(stage.maint(["unhold", &node]).run(), @r#"
    $ kubectl maint unhold worker-1
    -- stderr
    error: node/worker-1 is fenced, on hold by alice@bastion until it is unfenced: "fencing: powered off: dark" (since [time])
    hint: return the node to service and end the hold with `kubectl maint unfence worker-1`
    -- exit code 6
    "#);
    let dry_run = stage.maint(["unhold", &node, "--dry-run=server"]).run();
    assert_eq!(dry_run.code, 6, "{dry_run}");
    let unhold = stage.maint(["unhold", &node, "--yes"]);
    let run = unhold.holder("bob@laptop").run();
    assert_eq!(run.code, 6, "{run}");
    let both = stage.maint(["unhold", &node, &other]).run();
    assert_eq!(both.code, 6, "{both}");
    assert_eq!(stage.holder(&other), None, "that is no fencing's");
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    stage.is_untouched(&node);
}

/// As by a release with plain kubectl.
#[test]
fn a_hold_that_was_ended_is_taken_again() {
    let (stage, node) = Stage::with_silent_node("held-again");
    stage.fence(&node);
    let free = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}).to_string();
    let namespace = "kube-node-maintenance";
    let patch = [
        "patch",
        "lease",
        "-n",
        namespace,
        &node,
        "--type=merge",
        "-p",
        &free,
    ];
    stage.kubectl(&patch);
    assert_eq!(stage.holder(&node), None);
    let dry_run = stage.maint(["fence", &node, "--dry-run=server", "--", "false"]);
    let dry_run = dry_run.succeeds();
    assert!(
        dry_run
            .stderr
            .contains("on hold until it is unfenced (server dry run)"),
        "{dry_run}"
    );
    assert_eq!(stage.holder(&node), None);
    assert_snapshot!(fence(&stage, &node), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    node/worker-1 is already fenced by alice@bastion, powered off: dark (since [time])
    -- stderr
    node/worker-1 on hold until it is unfenced
    node/worker-1: nothing is left to evict or detach
    -- exit code 0
    ");
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    stage.is_untouched(&node);
}

/// What is theirs is left alone, and it is said.
#[test]
fn a_hold_that_somebody_took_over_is_theirs() {
    let (stage, node) = Stage::with_silent_node("lost");
    stage.fence(&node);
    takes_over(&stage, &node);
    assert_snapshot!(fence(&stage, &node), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    node/worker-1 is already fenced by alice@bastion, powered off: dark (since [time])
    -- stderr
    Warning: the fencing hold on node/worker-1 was lost: mallory@laptop has the lock now
    node/worker-1: nothing is left to evict or detach
    -- exit code 0
    ");
    stage.comes_back(&node, "boot-2");
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @r#"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: on hold by mallory@laptop: "mine" (since [time])
    hint: take it over first with `kubectl maint hold worker-1 --take-over -m WHY`
    -- exit code 3
    "#);
    for mallory in [&["unhold", &*node][..], &["acquire", &node, "-m", "mine"]] {
        stage.maint(mallory).holder("mallory@laptop").succeeds();
    }
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @r#"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: locked by mallory@laptop: "mine" (since [time], until [time], [length] left)
    hint: take it over first with `kubectl maint hold worker-1 --take-over -m WHY`
    -- exit code 3
    "#);
    assert!(stage.is_tainted(&node));
}

/// The machine is off, and nothing in the cluster says so: then the command does.
#[test]
fn a_hook_that_succeeded_and_can_not_be_recorded_is_told_of() {
    let (stage, node) = Stage::with_silent_node("unrecorded-hook");
    let gate = stage.directory().join("gate");
    let waits = "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done";
    let fence = stage.maint(["fence", &node, "--", "sh", "-c", waits]);
    let mut running = fence.env("GATE", &gate).start();
    running.says("begun");
    takes_over(&stage, &node);
    std::fs::write(&gate, "").expect("a file");
    assert_snapshot!(running.ends(), @r#"
    $ kubectl maint fence worker-1 -- sh -c "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done"
    -- stderr
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    begun
    Warning: the fencing hold on node/worker-1 was lost: mallory@laptop has the lock now
    Warning: the hook succeeded, but this was not recorded: node/worker-1 should be off now
    error: cannot fence node/worker-1: on hold by mallory@laptop: "mine" (since [time])
    hint: take it over first with `kubectl maint hold worker-1 --take-over -m WHY`
    -- exit code 3
    "#);
    assert_eq!(stage.record(&node), None);
    assert_eq!(stage.hook(&node), None);
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:mallory@laptop"));
}
