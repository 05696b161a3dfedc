//! Out-of-service taints that others set, and whether they are enough.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Stage, eventually};

const KEY: &str = "node.kubernetes.io/out-of-service";

/// The values and effects of the Node's out-of-service taints.
fn taints(stage: &Stage, node: &str) -> Vec<(Value, Value)> {
    let node = stage.node(node);
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let ours = taints.filter(|taint| taint["key"] == KEY);
    ours.map(|taint| (taint["value"].clone(), taint["effect"].clone()))
        .collect()
}

/// Only a taint with the effect NoExecute evicts pods.
#[test]
fn a_taint_that_evicts_nothing_is_not_enough() {
    let (stage, node) = Stage::with_unreachable_node("no-eviction");
    stage.kubectl(&["taint", "node", &node, &format!("{KEY}=x:NoSchedule")]);
    let both = [
        ("x".into(), "NoSchedule".into()),
        ("nodeshutdown".into(), "NoExecute".into()),
    ];
    stage.fence(&node);
    assert_eq!(taints(&stage, &node), both);
    // If it is removed, the next run sets it again.
    stage.kubectl(&["taint", "node", &node, &format!("{KEY}:NoExecute-")]);
    assert_eq!(taints(&stage, &node), both[..1]);
    stage.fence(&node);
    assert_eq!(taints(&stage, &node), both);
    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    assert_eq!(taints(&stage, &node), []);
}

/// A taint that evicts is as good as ours.
#[test]
fn a_taint_that_evicts_is_left_as_it_is() {
    let (stage, node) = Stage::with_unreachable_node("eviction");
    stage.kubectl(&["taint", "node", &node, &format!("{KEY}=x:NoExecute")]);
    stage.fence(&node);
    assert_eq!(taints(&stage, &node), [("x".into(), "NoExecute".into())]);
    let again = stage
        .maint(["fence", &node, "--powered-off=dark"])
        .succeeds();
    assert!(again.stdout.contains("is already fenced"), "{again}");
}

/// The record has room for only one proof.
#[test]
fn a_proof_that_replaces_a_recorded_one_says_so() {
    let (stage, node) = Stage::with_unreachable_node("two-proofs");
    stage.fence(&node);
    stage.kubectl(&["taint", "node", &node, &format!("{KEY}:NoExecute-")]);
    let fence = ["fence", &node, "--powered-off=I saw it"];
    assert_snapshot!(stage.maint(fence).arg("--dry-run").run(), @r#"
    $ kubectl maint fence worker-1 "--powered-off=I saw it" --dry-run
    node/worker-1 fenced by alice@bastion, powered off: I saw it (dry run)
    -- stderr
    Warning: node/worker-1 was fenced by alice@bastion at [time], powered off: dark, but since then it may have been restarted, or its taint was removed; fencing it again replaces that record
    -- exit code 0
    "#);
    stage.maint(fence).succeeds();
    let how = &stage.record(&node).expect("a record")["how"];
    assert_eq!(how["poweredOff"], "I saw it");
    eventually("the Event says what was replaced", || {
        let events = stage.kubectl(&["get", "events", "-o", "json"]);
        events.contains("powered off: I saw it (before: by alice@bastion at ")
    });
    let again = stage.maint(fence).succeeds();
    assert!(!again.stderr.contains("replaces"), "{again}");
}
