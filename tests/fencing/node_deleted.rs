//! A Node that somebody deletes while it is fenced or unfenced: its lock and records are deleted
//! with it.

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
