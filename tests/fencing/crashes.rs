//! The verbs killed after each step, and run again.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::Stage;

/// A hook that kills the verb: its supervisor's parent.
const KILLS: &str = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600";

#[test]
fn after_a_crash_under_the_hold_it_goes_on_and_knows_the_hold_as_its_own() {
    let (stage, node) = Stage::with_silent_node("held-crash");
    let hook = ["fence", &node, "--", "sh", "-c", KILLS];
    stage.maint(hook).start().ends_killed();
    assert_eq!(stage.record(&node), None);
    assert!(!stage.is_tainted(&node));
    assert_eq!(
        stage.holder(&node).as_deref(),
        Some("kubeadm:alice@bastion")
    );

    assert_snapshot!(stage.maint(["fence", &node, "--", "echo", "off"]).run(), @"
    $ kubectl maint fence worker-1 -- echo off
    node/worker-1 fenced by alice@bastion, with echo
    -- stderr
    off
    node/worker-1: nothing is left of it that has to go
    -- exit code 0
    ");
    assert!(stage.is_tainted(&node));
    stage.comes_back(&node, "boot-2");
    assert_snapshot!(stage.maint(["unfence", &node]).run(), @"
    $ kubectl maint unfence worker-1
    node/worker-1 unfenced
    -- stderr
    node/worker-1: the hold of its fencing is ended
    -- exit code 0
    ");
    stage.is_untouched(&node);
}

#[test]
fn after_a_crash_behind_the_record_it_follows_on_and_runs_no_hook() {
    let (stage, node) = Stage::with_silent_node("told-crash");
    let namespace = stage.own();
    stage.create(&[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "stays", "namespace": namespace, "finalizers": ["example.com/backup"],
            },
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]},
        }),
    ]);
    let mut running = stage.maint(["fence", &node, "--powered-off=dark"]).start();
    running.says("waiting for 1 pod");
    running.is_sent(Signal::KILL);
    running.ends_killed();
    let record = stage.record(&node);
    assert!(record.is_some() && stage.is_tainted(&node));

    let ran = stage.directory().join("ran");
    let hook = ["--", "touch", ran.to_str().expect("a path")];
    let again = || stage.maint(["fence", &node, "--timeout=0"]);
    let run = again().args(hook).run();
    assert_eq!(run.code, 4, "{run}");
    assert!(
        run.stdout.contains("was fenced already by alice@bastion"),
        "{run}"
    );
    assert!(
        run.stderr.contains("1 pod (told-crash/stays) is left"),
        "{run}"
    );
    let run = again().args(["-o", "json"]).args(hook).run();
    assert_eq!(run.code, 4, "{run}");
    let outcome: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(outcome["fenced"], true);
    let left = json!({"pods": ["told-crash/stays"], "heldByFinalizers": ["told-crash/stays"]});
    assert_eq!(outcome["left"], left);
    assert!(!ran.exists());
    assert_eq!(stage.record(&node), record);

    let none = json!({"metadata": {"finalizers": null}}).to_string();
    let pod = [
        "patch",
        "pod",
        "stays",
        "-n",
        namespace,
        "--type=merge",
        "-p",
        &none,
    ];
    stage.kubectl(&pod);
    stage
        .maint(["fence", &node, "--powered-off=dark"])
        .succeeds();
}

#[test]
fn an_unfencing_goes_on_after_a_crash_in_its_hook_and_before_the_end_of_the_hold() {
    let (stage, node) = Stage::with_silent_node("back-crash");
    stage.maint(["fence", &node, "--", "true"]).succeeds();
    let hook = ["unfence", &node, "--", "sh", "-c", KILLS];
    stage.maint(hook).start().ends_killed();
    assert!(stage.record(&node).is_some() && stage.is_tainted(&node));
    assert!(stage.holder(&node).is_some());

    // As a run leaves it that ends between its two writes.
    stage.patch(
        "node",
        &node,
        &json!({
            "metadata": {"annotations": {"kubectl-maint.dev/fenced": null}},
            "spec": {"taints": null},
        }),
    );
    assert_eq!(stage.maint(["unfence", &node]).run().code, 6);
    assert_snapshot!(stage.maint(["unfence", &node, "--yes"]).run(), @"
    $ kubectl maint unfence worker-1 --yes
    node/worker-1 is not fenced
    -- stderr
    node/worker-1: the hold of its fencing is ended
    -- exit code 0
    ");
    stage.is_untouched(&node);
}
