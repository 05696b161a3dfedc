//! The hold of a fencing: what ends it, and what happens if somebody else ends it or takes it over.

use insta::assert_snapshot;

use crate::support::{PatientHook, Run, Stage};

/// Another user takes over the lock of the node.
fn takes_over(stage: &Stage, node: &str) {
    let hold = stage.maint(["hold", node, "-m", "mine", "--take-over", "--yes"]);
    hold.holder("mallory@laptop").succeeds();
}

fn fence(stage: &Stage, node: &str) -> Run {
    stage.maint(["fence", node, "--powered-off=dark"]).run()
}

/// The hold was ended without `unfence`, as by a release with plain kubectl.
#[test]
fn a_hold_that_was_ended_is_taken_again() {
    let (stage, node) = Stage::with_unreachable_node("held-again");
    stage.fence(&node);
    stage.frees(&node);
    assert_eq!(stage.holder(&node), None);
    let dry_run = stage.maint(["fence", &node, "--dry-run", "--", "false"]);
    let dry_run = dry_run.succeeds();
    assert!(
        dry_run
            .stderr
            .contains("on hold until it is unfenced (dry run)"),
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

/// The output says that somebody else now holds the lock, and that hold is not changed.
#[test]
fn a_hold_that_was_taken_over_is_left_alone() {
    let (stage, node) = Stage::with_unreachable_node("lost");
    stage.fence(&node);
    takes_over(&stage, &node);
    assert_snapshot!(fence(&stage, &node), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    node/worker-1 is already fenced by alice@bastion, powered off: dark (since [time])
    -- stderr
    Warning: the lock on node/worker-1 was lost: mallory@laptop has it now
    node/worker-1: nothing is left to evict or detach
    -- exit code 0
    ");
    stage.comes_back(&node, "boot-2");
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @r#"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: on hold by mallory@laptop: "mine" (since [time])
    hint: ask mallory@laptop to unfence the node; if nobody works there, take the lock over first with `kubectl maint hold worker-1 -m WHY --take-over`
    -- exit code 3
    "#);
    stage.frees(&node);
    let acquire = stage.maint(["acquire", &node, "-m", "mine"]);
    acquire.holder("mallory@laptop").succeeds();
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @r#"
    $ kubectl maint unfence worker-1
    -- stderr
    error: cannot unfence node/worker-1: locked by mallory@laptop: "mine" (since [time], until [time], [length] left)
    hint: ask mallory@laptop to unfence the node; if nobody works there, take the lock over first with `kubectl maint hold worker-1 -m WHY --take-over`
    -- exit code 3
    "#);
    assert!(stage.is_tainted(&node));
}

/// The machine is off, but the cluster has no record of that, so the output says it.
#[test]
fn a_hook_that_succeeded_but_cannot_be_recorded_is_reported() {
    let (stage, node) = Stage::with_unreachable_node("unrecorded-hook");
    let proxy = stage.directory().join("proxy");
    let waits = "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done";
    let fence = stage.maint(["fence", &node, "--", "sh", "-c", waits]);
    let mut running = fence.env("GATE", &proxy).start();
    running.says("begun");
    takes_over(&stage, &node);
    std::fs::write(&proxy, "").expect("a file");
    assert_snapshot!(running.ends(), @r#"
    $ kubectl maint fence worker-1 -- sh -c "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done"
    -- stderr
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    begun
    Warning: the lock on node/worker-1 was lost: mallory@laptop has it now
    Warning: the hook succeeded, but this was not recorded: node/worker-1 should be off now
    error: cannot fence node/worker-1: on hold by mallory@laptop: "mine" (since [time])
    hint: ask mallory@laptop to end the hold; if nobody works there, take the lock over first with `kubectl maint hold worker-1 -m WHY --take-over`
    -- exit code 3
    "#);
    assert_eq!(stage.record(&node), None);
    assert_eq!(stage.hook(&node), None);
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:mallory@laptop"));
}

/// Without the lock, the record and the taint would be on a node that others can acquire.
#[test]
fn the_lock_of_a_fenced_node_is_ended_by_unfence_alone() {
    let (stage, node) = Stage::with_unreachable_node("protected");
    stage.fence(&node);
    takes_over(&stage, &node);
    let mallory = |words: &[&str]| stage.maint(words).holder("mallory@laptop");
    assert_snapshot!(mallory(&["unhold", &node]).run(), @r#"
    $ kubectl maint unhold worker-1
    -- stderr
    error: cannot unhold node/worker-1: fenced, on hold by mallory@laptop: "mine" (since [time])
    hint: return the node to service first with `kubectl maint unfence worker-1`
    -- exit code 6
    "#);
    for words in [
        &["release", &node][..],
        &["release", &node, "--dry-run"],
        &["unhold", &node, "--yes"],
    ] {
        let run = mallory(words).run();
        assert_eq!(run.code, 6, "{run}");
        assert_eq!(run.next_command(), ["unfence", &node], "{run}");
    }
    let force = ["release", &node, "--force", "--yes"];
    let run = stage.maint(force).holder("bob@laptop").run();
    assert_eq!(run.code, 6, "{run}");
    let holder = stage.holder(&node);
    assert_eq!(holder.as_deref(), Some("kubeadm:mallory@laptop"));
    stage.comes_back(&node, "boot-2");
    mallory(&["unfence", &node, "--yes"]).succeeds();
    mallory(&["unhold", &node]).succeeds();
    stage.is_untouched(&node);
}

#[test]
fn a_lease_that_a_node_was_fenced_under_is_not_released_either() {
    let (stage, node) = Stage::with_unreachable_node("protected-lease");
    stage.maint(["acquire", &node]).succeeds();
    stage.fence(&node);
    assert_snapshot!(stage.maint(["release", &node]).run(), @"
    $ kubectl maint release worker-1
    -- stderr
    error: cannot release node/worker-1: fenced, locked by alice@bastion (since [time], until [time], [length] left)
    hint: return the node to service first with `kubectl maint unfence worker-1`
    -- exit code 6
    ");
    let force = ["release", &node, "--force", "--yes"];
    let run = stage.maint(force).holder("bob@laptop").run();
    assert_eq!(run.code, 6, "{run}");
    assert_eq!(stage.holder(&node).as_deref(), Some("alice@bastion"));
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    stage.maint(["release", &node]).succeeds();
    stage.is_untouched(&node);
}

/// The new lock protects the node, so this is only a warning.
#[test]
fn locking_a_fenced_node_warns() {
    let (stage, node) = Stage::with_unreachable_node("locked-fenced");
    stage.fence(&node);
    stage.frees(&node);
    let bob = |words: &[&str]| stage.maint(words).holder("bob@laptop").succeeds();
    assert_snapshot!(bob(&["acquire", &node]), @"
    $ kubectl maint acquire worker-1
    node/worker-1 acquired by bob@laptop until [time] (30m)
    -- stderr
    Warning: node/worker-1 is fenced: it is off or cut off, and stays out of service until you run `kubectl maint unfence worker-1`
    Expires [time] (in 30m). To unfence and release, extend or hold:
      kubectl maint unfence worker-1
      kubectl maint release worker-1
      kubectl maint renew worker-1
      kubectl maint hold worker-1 -m WHY
    -- exit code 0
    ");
    stage.frees(&node);
    for words in [
        &["hold", &node, "-m", "new disk"][..],
        &["hold", &node, "-m", "new disk", "--take-over", "--yes"],
    ] {
        let run = bob(words);
        assert!(
            !run.stderr.contains("is fenced") || words.len() == 4,
            "{run}"
        );
    }
    stage.frees(&node);
    let warns = |words: &[&str]| {
        let run = bob(words);
        let warning = " is fenced: it is off or cut off";
        assert!(run.stderr.contains(warning), "{run}");
    };
    warns(&["with", &node, "--", "true"]);
    // A new Lease does not show it, but the Node does.
    stage.deletes_lease(&node);
    warns(&["hold", &node, "-m", "new disk"]);
}

/// Another user held the node in between, and may have started the machine again.
#[test]
fn a_hold_that_was_taken_over_and_ended_during_the_hook_leaves_no_proof() {
    let (stage, node) = Stage::with_unreachable_node("ended-between");
    let hook = PatientHook::new(&stage);
    let running = hook.begins(stage.maint(["fence", &node]));
    takes_over(&stage, &node);
    let unhold = stage.maint(["unhold", &node]);
    unhold.holder("mallory@laptop").succeeds();
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 5, "{run}");
    let ended = format!("error: cannot fence node/{node}: its lock was ended during this command");
    for words in ["the hook succeeded, but this was not recorded", &ended] {
        assert!(run.stderr.contains(words), "{run}");
    }
    stage.is_untouched(&node);
}

#[test]
fn taking_over_from_a_running_fence_warns_about_its_hook() {
    let (stage, node) = Stage::with_unreachable_node("taken-running");
    let hook = PatientHook::new(&stage);
    let running = hook.begins(stage.maint(["fence", &node]));
    let bob = |words: &[&str]| stage.maint(words).holder("bob@laptop").run();
    assert_snapshot!(bob(&["fence", &node, "--powered-off=dark"]), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: a hook may still be running for node/worker-1: sh, started by alice@bastion at [time] (until [time] at the latest)
    hint: wait for it to end; if that run was interrupted, run the command again with --resume=[id]
    -- exit code 3
    ");
    assert_snapshot!(bob(&["hold", &node, "-m", "mine", "--take-over", "--yes"]), @"
    $ kubectl maint hold worker-1 -m mine --take-over --yes
    node/worker-1 on hold by bob@laptop, taken over from alice@bastion
    -- stderr
    Warning: a hook may still be running for node/worker-1: sh, started by alice@bastion at [time] (until [time] at the latest); once it has ended, continue with `kubectl maint fence worker-1 --resume=[id] -- HOOK`
    Warning: alice@bastion may still be working on node/worker-1: tell them that their lock has ended
    A hold does not expire, and `kubectl drain` still evicts pods. To end it:
      kubectl maint unhold worker-1
    -- exit code 0
    ");
    let run = bob(&["fence", &node, "--powered-off=dark"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("a hook may still be running"), "{run}");
    assert!(stage.hook(&node).is_some());
    hook.may_end();
    assert_eq!(running.ends().code, 3);
}
