//! What `status` shows of fenced nodes that the caller does not name.

use serde_json::json;

use crate::support::Stage;

/// The row of the node in the table of all nodes, with single spaces.
fn row(stage: &Stage, node: &str) -> String {
    let all = stage.maint(["status", "--all"]).succeeds();
    let row = all.stdout.lines().find(|line| line.starts_with(node));
    let row = row.unwrap_or_else(|| panic!("{all}"));
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The node is also shown as fenced if its lock is not a hold, and after its lock was released.
#[test]
fn a_fenced_node_that_is_ready_again_is_shown_as_fenced() {
    let (stage, node) = Stage::with_unreachable_node("shown");
    stage.maint(["acquire", &node]).succeeds();
    stage.fence(&node);
    let unreachable = row(&stage, &node);
    assert!(
        unreachable.contains("OutOfService (fenced by alice"),
        "{unreachable}"
    );
    let restarted = json!({"status": {"nodeInfo": {"bootID": "boot-2"}}});
    stage.patch_status(&node, &restarted);
    let unreachable = row(&stage, &node);
    assert!(
        unreachable.contains(" before its last restart)"),
        "{unreachable}"
    );
    stage.comes_back(&node, "boot-2");
    let ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as the test says",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]}});
    stage.patch_status(&node, &ready);
    let fenced = "Fenced (by alice";
    let held = row(&stage, &node);
    assert!(held.contains(" Locked ") && held.contains(fenced), "{held}");
    let json = stage.maint(["status", &node, "-o", "json"]).succeeds();
    assert!(json.stdout.contains("\"nodeHealth\": \"Fenced\""), "{json}");
    let earlier = json!({"status": {"nodeInfo": {"bootID": "boot-1"}}});
    stage.patch_status(&node, &earlier);
    let same_boot = row(&stage, &node);
    let misfenced = "OutOfService, kubelet alive (taint set by alice";
    assert!(same_boot.contains(misfenced), "{same_boot}");
    stage.patch_status(&node, &restarted);
    stage.frees(&node);
    let free = row(&stage, &node);
    assert!(free.contains(" Free ") && free.contains(fenced), "{free}");
    stage.maint(["unfence", &node]).succeeds();
    let lease = stage.lease(&node);
    let lease = lease.expect("its Lease stays");
    assert!(lease["metadata"]["annotations"]["kubectl-maint.dev/fenced"].is_null());
    let unfenced = row(&stage, &node);
    assert!(unfenced.ends_with(" Ready"), "{unfenced}");
}
