//! Every command that finds the hold of a fencing shows its purpose, and how to end it.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Stage;
use crate::verbs::kept_off;

#[test]
fn every_verb_names_what_ends_the_hold() {
    let (stage, node) = Stage::with_unreachable_node("met");
    stage.fence(&node);
    let by_force = [
        vec!["release", &node, "--force", "--yes"],
        vec!["unhold", &node, "--yes"],
    ];
    for caller in ["alice@bastion", "alice@laptop", "bob@laptop"] {
        for line in kept_off(&node).iter().chain(&by_force) {
            let run = stage.maint(line).holder(caller).run();
            assert_eq!(run.next_command(), ["unfence", &node], "{caller}: {run}");
            let stands = "fenced, on hold by alice@bastion until it is unfenced: \"fencing: ";
            assert!(run.stderr.contains(stands), "{caller}: {run}");
        }
    }
    assert_snapshot!(stage.maint(["acquire", &node]).run(), @r#"
    $ kubectl maint acquire worker-1
    -- stderr
    error: cannot acquire node/worker-1: fenced, on hold by alice@bastion until it is unfenced: "fencing: powered off: dark" (since [time])
    hint: return the node to service and end the hold with `kubectl maint unfence worker-1`, or add --reentry to keep working under it
    -- exit code 3
    "#);
    let bob = |words: &[&str]| stage.maint(words).holder("bob@laptop").run();
    assert_snapshot!(bob(&["acquire", &node]), @r#"
    $ kubectl maint acquire worker-1
    -- stderr
    error: cannot acquire node/worker-1: fenced, on hold by alice@bastion until it is unfenced: "fencing: powered off: dark" (since [time])
    hint: return the node to service and end the hold with `kubectl maint unfence worker-1`, or add --wait to wait for it
    -- exit code 3
    "#);
    let run = bob(&["release", &node, "--force", "--yes"]);
    stage.comes_back(&node, "boot-2");
    let pasted = stage.maint(run.next_command()).arg("--yes");
    pasted.holder("bob@laptop").succeeds();
    stage.is_untouched(&node);
}

/// The reason of this hold says who fences the node and why, and a fencing hold has no expected
/// end.
#[test]
fn hold_changes_nothing_of_a_hold_that_fencing_took() {
    let (stage, node) = Stage::with_unreachable_node("kept");
    stage.fence(&node);
    let other = stage.name("worker-2");
    stage.maint(["hold", &other, "-m", "disk"]).succeeds();
    let before = stage.lease(&node);
    assert_snapshot!(
        stage.maint(["hold", &node, "-m", "mine", "--expect-until=1s"]).run(),
        @r#"
    $ kubectl maint hold worker-1 -m mine --expect-until=1s
    -- stderr
    error: cannot put node/worker-1 on hold: fenced, on hold by alice@bastion until it is unfenced: "fencing: powered off: dark" (since [time])
    hint: return the node to service and end the hold with `kubectl maint unfence worker-1`
    -- exit code 6
    "#
    );
    for words in [
        &["hold", &node, "-m", "mine", "--take-over", "--yes"][..],
        &["hold", &node, "-m", "mine", "--dry-run"],
        &["hold", &node, &other, "-m", "two disks"],
        &["hold", &node, &other, "-m", "two disks", "--wait"],
    ] {
        let run = stage.maint(words).run();
        assert_eq!(run.code, 6, "{run}");
        assert_eq!(stage.lease(&node), before, "{run}");
    }
    let reason = "kubectl-maint.dev/reason";
    let other = stage.lease(&other).expect("a Lease");
    assert_eq!(other["metadata"]["annotations"][reason], json!("two disks"));
}

#[test]
fn a_forced_deletion_names_what_ends_the_hold() {
    let (stage, node) = Stage::with_unreachable_node("forced-met");
    stage.fence(&node);
    let target = format!("node/{node}");
    let force = stage.maint(["force-delete", &target, "-m", "burnt"]);
    let run = force.holder("bob@laptop").run();
    assert_eq!(run.code, 6, "{run}");
    let words = "BLOCKER  lease             alice@bastion fenced the node and has it on hold until it is \
                 unfenced, \"fencing: powered off: dark\": ask them, or run unfence (--override=lease)\n";
    assert!(run.stdout.contains(words), "{run}");
    let hint = format!(
        "hint: return the node to service and end the hold with `kubectl maint unfence {node}`; \
         then: `kubectl maint force-delete {target} "
    );
    assert!(run.stderr.contains(&hint), "{run}");
}

/// There is no record yet, so the message must not say that the node is already fenced.
#[test]
fn before_the_hook_has_ended_the_node_is_being_fenced() {
    let (stage, node) = Stage::with_unreachable_node("being");
    let proxy = stage.directory().join("proxy");
    let waits = "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done";
    let fence = stage.maint(["fence", &node, "--", "sh", "-c", waits]);
    let mut running = fence.env("GATE", &proxy).start();
    running.says("begun");
    let acquire = stage.maint(["acquire", &node]).holder("bob@laptop");
    assert_snapshot!(acquire.run(), @r#"
    $ kubectl maint acquire worker-1
    -- stderr
    error: cannot acquire node/worker-1: being fenced, on hold by alice@bastion until it is unfenced: "fencing: with sh" (since [time])
    hint: if its `fence` command no longer runs, end the hold with `kubectl maint unfence worker-1`; or add --wait to wait for it
    -- exit code 3
    "#);
    let target = format!("node/{node}");
    let force = stage.maint(["force-delete", &target, "-m", "burnt"]);
    let run = force.holder("bob@laptop").run();
    assert_eq!(run.code, 6, "{run}");
    let words = "alice@bastion is fencing the node and has it on hold until it is unfenced";
    assert!(run.stdout.contains(words), "{run}");
    let hint = format!(
        "hint: if its `fence` command no longer runs, end the hold with `kubectl maint unfence {node}`; then: "
    );
    assert!(run.stderr.contains(&hint), "{run}");
    std::fs::write(&proxy, "").expect("a file");
    let run = running.ends();
    assert_eq!(run.code, 0, "{run}");
}
