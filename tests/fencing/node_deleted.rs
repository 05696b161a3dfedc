//! A Node that somebody deletes while it is fenced or unfenced: its lock and records are deleted
//! with it.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{LABELLING, Run, Stage, Treatment};

/// A hook that prints that it has begun, and succeeds once the file `$GATE` exists.
const HOOK: [&str; 4] = [
    "--",
    "sh",
    "-c",
    "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done",
];

/// Runs `verb` with [`HOOK`], and deletes the Node while the hook runs.
fn deleted_meanwhile(stage: &Stage, verb: &str, node: &str) -> Run {
    let proxy = stage.directory().join("proxy");
    let run = stage.maint([verb, node]).args(HOOK).env("GATE", &proxy);
    let mut run = run.start();
    run.says("begun");
    delete(stage, node);
    std::fs::write(&proxy, "").expect("a file");
    run.ends()
}

/// Deletes the Node. Its Lease stays, as if the garbage collector were not running.
fn delete(stage: &Stage, node: &str) {
    let nobodys = json!({"metadata": {"ownerReferences": null}}).to_string();
    stage.kubectl(&[
        "patch",
        "lease",
        node,
        "--namespace=kube-node-maintenance",
        "--type=merge",
        "-p",
        &nobodys,
    ]);
    stage.kubectl(&["delete", "node", node]);
}

/// Asserts that the Lease exists and has no holder.
#[track_caller]
fn is_free(stage: &Stage, node: &str) {
    assert!(stage.lease(node).is_some());
    assert_eq!(stage.holder(node), None);
}

/// Keeps writes to Nodes, except for dry runs and the held label.
fn keeping(method: &Method, path: &str) -> Treatment {
    let is_write = *method == Method::PATCH && path.contains("/nodes/");
    match is_write && !path.contains("dryRun") && !path.contains(LABELLING) {
        true => Treatment::Keep,
        false => Treatment::Pass,
    }
}

/// The hook has turned the machine on, but its Node is gone, so it can't be unfenced.
#[test]
fn a_node_that_is_deleted_during_the_hook_of_unfence_is_reported() {
    let (stage, node) = Stage::with_unreachable_node("deleted-back");
    stage.fence(&node);
    assert_snapshot!(deleted_meanwhile(&stage, "unfence", &node), @r#"
    $ kubectl maint unfence worker-1 -- sh -c "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done"
    -- stderr
    begun
    node/worker-1: fencing hold ended
    error: the hook succeeded, but node/worker-1 was deleted: it is not in service
    hint: to use it again, register it: its fencing record, taint and hold were deleted with it
    -- exit code 1
    "#);
    is_free(&stage, &node);
}

/// There is nothing to wait for after the Node is deleted.
#[test]
fn a_node_that_is_deleted_during_the_wait_is_reported() {
    let (stage, node) = Stage::with_unreachable_node("deleted-awaited");
    stage.fence(&node);
    let mut run = stage.maint(["unfence", &node, "--", "true"]).start();
    run.says("waiting up to 5m for it to come back");
    delete(&stage, &node);
    let run = run.ends();
    assert_eq!(run.code, 1, "{run}");
    let message = format!("error: the hook succeeded, but node/{node} was deleted:");
    assert!(run.stderr.contains(&message), "{run}");
    is_free(&stage, &node);
}

/// A pod is left, so `fence` waits. The end of that pod must not count as the end of a fencing.
#[test]
fn a_fence_that_waits_notices_that_the_node_is_not_fenced_any_more() {
    type Change = fn(&Stage, &str);
    let untaint: Change = |stage, node| {
        stage.kubectl(&["taint", "node", node, "node.kubernetes.io/out-of-service-"]);
    };
    let delete_node: Change = |stage, node| {
        stage.kubectl(&["delete", "node", node]);
    };
    for (short, change, message) in [
        (
            "untainted",
            untaint,
            "is no longer fenced: somebody removed its ",
        ),
        ("deleted", delete_node, "was deleted, along with its lock"),
    ] {
        let (stage, node) = Stage::with_unreachable_node(&format!("fence-{short}"));
        stage.create_pod_that_stays(&node);
        let fence = stage.maint(["fence", &node, "--powered-off=dark", "-o", "json"]);
        let fence = fence.args(["--accept-risk=no-owner", "-m", "it can go"]);
        let running = fence.until_it_says("waiting for 1 pod");
        change(&stage, &node);
        let run = running.ends();
        assert_eq!(run.code, 1, "{run}");
        let error = format!("error: node/{node} {message}");
        assert!(run.stderr.contains(&error), "{run}");
        assert_eq!(run.item()["fenced"], json!(null), "{run}");
    }
}

/// No hook was run, so no result of a hook is reported.
#[test]
fn a_node_that_is_deleted_while_its_record_is_taken_away_leaves_no_hold() {
    let (stage, node) = Stage::with_unreachable_node("deleted-cleared");
    stage.fence(&node);
    stage.comes_back(&node, "boot-2");
    let proxy = stage.proxy(keeping);
    let run = stage
        .maint(["unfence", &node])
        .kubeconfig(&proxy.kubeconfig);
    let run = run.start();
    let kept = proxy.kept();
    delete(&stage, &node);
    assert_eq!(kept.passes(), 404);
    assert_snapshot!(run.ends(), @"
    $ kubectl maint unfence worker-1
    -- stderr
    node/worker-1: fencing hold ended
    error: node/worker-1 was deleted, along with its lock and records
    -- exit code 1
    ");
    is_free(&stage, &node);
}

/// The effect of the hook stays, and a warning reports it. There is no hint, because the Node is
/// gone.
#[test]
fn a_node_that_is_deleted_during_the_hook_of_fence_is_reported() {
    let (stage, node) = Stage::with_unreachable_node("deleted-hook");
    assert_snapshot!(deleted_meanwhile(&stage, "fence", &node), @r#"
    $ kubectl maint fence worker-1 -- sh -c "echo begun; until [ -e \"$GATE\" ]; do sleep 0.1; done"
    -- stderr
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    begun
    node/worker-1: fencing hold ended
    Warning: the hook succeeded, but this was not recorded: node/worker-1 should be off now
    error: node/worker-1 was deleted, along with its lock and records
    -- exit code 1
    "#);
    is_free(&stage, &node);
}

/// A record without an answer can no longer be written, so the hold is ended.
#[test]
fn a_record_that_gets_no_answer_before_its_node_is_deleted_leaves_no_hold() {
    let (stage, node) = Stage::with_unreachable_node("deleted-record");
    let proxy = stage.proxy(keeping);
    let fence = ["fence", &node, "--powered-off=dark", "--request-timeout=5s"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    delete(&stage, &node);
    assert_snapshot!(run.ends(), @"
    $ kubectl maint fence worker-1 --powered-off=dark --request-timeout=5s
    -- stderr
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    node/worker-1: fencing hold ended
    error: node/worker-1 was deleted, along with its lock and records
    -- exit code 1
    ");
    assert_eq!(kept.passes(), 404);
    is_free(&stage, &node);
}

/// No Lease is created for a Node that no longer exists.
#[test]
fn a_node_that_is_deleted_before_its_hold_is_reported() {
    let (stage, node) = Stage::with_unreachable_node("deleted-unheld");
    let reads = AtomicUsize::new(0);
    let path = format!("/api/v1/nodes/{node}");
    let proxy = stage.proxy(move |method, target| {
        let is_read = *method == Method::GET && target.starts_with(&path);
        match is_read && reads.fetch_add(1, Ordering::SeqCst) == 1 {
            true => Treatment::Keep,
            false => Treatment::Pass,
        }
    });
    let fence = ["fence", &node, "--powered-off=dark"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).start();
    let kept = proxy.kept();
    stage.kubectl(&["delete", "node", &node]);
    assert_eq!(kept.passes(), 404);
    assert_snapshot!(run.ends(), @"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    error: node/worker-1 was deleted, along with its lock and records
    -- exit code 1
    ");
    assert_eq!(stage.lease(&node), None);
}
