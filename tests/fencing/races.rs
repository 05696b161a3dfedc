//! Others who come in between.

use std::path::Path;

use serde_json::json;

use crate::support::Stage;

/// A hook that says that it has begun, and succeeds once `gate` is there.
fn waits_for(gate: &Path) -> String {
    format!(
        "echo begun; until [ -e '{}' ]; do sleep 0.1; done",
        gate.display()
    )
}

fn open(gate: &Path) {
    std::fs::write(gate, "").expect("a file");
}

/// Its heartbeat alone tells: the Node is as it was.
#[test]
fn a_node_that_came_back_is_not_called_fenced() {
    let (stage, node) = Stage::with_silent_node("came-back");
    let gate = stage.directory().join("gate");
    let script = waits_for(&gate);
    let mut running = stage
        .maint(["fence", &node, "--", "sh", "-c", &script])
        .start();
    running.says("begun");
    stage.beats(&node);
    open(&gate);
    let run = running.ends();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("worker-1 is alive"), "{run}");
    stage.is_untouched(&node);
}

#[test]
fn of_two_fencers_one_is_told_of_the_other() {
    let (stage, node) = Stage::with_silent_node("two");
    let gate = stage.directory().join("gate");
    let script = waits_for(&gate);
    let mut first = stage
        .maint(["fence", &node, "--", "sh", "-c", &script])
        .start();
    first.says("begun");
    let second = stage.maint(["fence", &node, "--powered-off=dark"]);
    let run = second.holder("bob@laptop").run();
    assert_eq!(run.code, 3, "{run}");
    assert!(
        run.stderr
            .contains("is on hold by alice@bastion: \"fencing: with sh\""),
        "{run}"
    );
    open(&gate);
    let run = first.ends();
    assert_eq!(run.code, 0, "{run}");
    let record = stage.record(&node).expect("a record");
    assert_eq!(record["who"], "alice@bastion");

    // From now on it is fenced for everybody.
    let second = stage.maint(["fence", &node, "--powered-off=dark"]);
    let run = second.holder("bob@laptop").succeeds();
    assert!(
        run.stdout.contains("was fenced already by alice@bastion"),
        "{run}"
    );
    assert_eq!(stage.record(&node), Some(record));
}

/// What is undone is the fencing that was agreed to, not one that came meanwhile.
#[test]
fn a_node_that_is_fenced_anew_meanwhile_stays_fenced() {
    let (stage, node) = Stage::with_silent_node("anew-race");
    stage
        .maint(["fence", &node, "--isolated", "--", "true"])
        .succeeds();
    stage.comes_back(&node, "boot-1");
    let gate = stage.directory().join("gate");
    let script = waits_for(&gate);
    let mut running = stage
        .maint(["unfence", &node, "--", "sh", "-c", &script])
        .start();
    running.says("begun");
    let mut record = stage.record(&node).expect("a record");
    record["who"] = json!("bob@laptop");
    let annotation =
        json!({"metadata": {"annotations": {"kubectl-maint.dev/fenced": record.to_string()}}});
    stage.patch("node", &node, &annotation);
    open(&gate);
    let run = running.ends();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("was fenced anew meanwhile"), "{run}");
    assert!(stage.is_tainted(&node));
    assert_eq!(stage.record(&node), Some(record));
}

/// A fence that is in its hook keeps its hold, from its own person and from others.
#[test]
fn unfencing_does_not_end_the_hold_of_a_fence_at_work() {
    let (stage, node) = Stage::with_silent_node("at-work");
    let gate = stage.directory().join("gate");
    let script = waits_for(&gate);
    let mut fence = stage
        .maint(["fence", &node, "--", "sh", "-c", &script])
        .start();
    fence.says("begun");
    for person in ["alice@bastion", "bob@laptop"] {
        let run = stage.maint(["unfence", &node]).holder(person).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr
                .contains("on hold by alice@bastion for a fencing that is under way"),
            "{run}"
        );
        let holder = stage.holder(&node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    }
    open(&gate);
    let run = fence.ends();
    assert_eq!(run.code, 0, "{run}");
}

/// The same person in two windows: they work under the same hold, and one record stands.
#[test]
fn one_fencer_twice_fences_once() {
    let (stage, node) = Stage::with_silent_node("twice");
    let gate = stage.directory().join("gate");
    let script = waits_for(&gate);
    let mut runs = [0, 1].map(|_| {
        stage
            .maint(["fence", &node, "--", "sh", "-c", &script])
            .start()
    });
    for run in &mut runs {
        run.says("begun");
    }
    open(&gate);
    let runs = runs.map(crate::support::Running::ends);
    for run in &runs {
        assert_eq!(run.code, 0, "{run}");
    }
    assert!(stage.is_tainted(&node));
    let hold = stage.record(&node).expect("a record")["hold"].clone();
    assert!(hold.is_string());
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    stage.is_untouched(&node);
}
