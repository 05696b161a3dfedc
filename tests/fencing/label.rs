//! The held label on a Node with the hold of a fencing.

use http::Method;
use serde_json::{Value, json};

use crate::support::{LABELLING, Stage, Treatment};

/// The value of the label, and the annotations that explain it.
fn held(stage: &Stage, node: &str) -> (Value, Value) {
    let metadata = &stage.node(node)["metadata"];
    let prefix = "kubectl-maint.dev/held-";
    let notes = metadata["annotations"].as_object().into_iter().flatten();
    let notes = notes.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
    let notes = notes.filter(|(key, _)| !["lock-id", "user"].contains(key));
    let notes = notes.map(|(key, value)| (key.to_owned(), value.clone()));
    let label = metadata["labels"]["kubectl-maint.dev/held"].clone();
    (label, Value::Object(notes.collect()))
}

#[test]
fn the_node_is_labeled_until_it_is_unfenced() {
    let (stage, node) = Stage::with_unreachable_node("label");
    let fence = [
        "fence",
        &node,
        "-m",
        "fire",
        "--ticket=OPS-7",
        "--powered-off=dark",
    ];
    stage.maint(fence).succeeds();
    let notes = json!({
        "by": "alice@bastion", "reason": "fencing: fire (powered off: dark)", "ticket": "OPS-7",
    });
    assert_eq!(held(&stage, &node), (json!("alice-bastion"), notes.clone()));
    let lease = stage.lease(&node).expect("a Lease");
    let ticket = &lease["metadata"]["annotations"]["kubectl-maint.dev/ticket"];
    assert_eq!(ticket, "OPS-7");
    assert_eq!(stage.node(&node)["spec"]["unschedulable"], Value::Null);

    // The same command writes the label again if a crash or another user removed it.
    stage.kubectl(&["label", "node", &node, "kubectl-maint.dev/held-"]);
    stage.maint(fence).succeeds();
    assert_eq!(held(&stage, &node), (json!("alice-bastion"), notes));

    stage.comes_back(&node, "boot-2");
    stage.maint(["unfence", &node]).succeeds();
    stage.is_untouched(&node);
    assert_eq!(held(&stage, &node).1, json!({}));
}

#[test]
fn the_label_goes_with_the_hold_if_the_hook_fails() {
    let (stage, node) = Stage::with_unreachable_node("label-fails");
    let is_labeled = "kubectl get node -o name -l kubectl-maint.dev/held | grep .; exit 7";
    let hook = stage
        .maint(["fence", &node, "--", "sh", "-c", is_labeled])
        .run();
    assert_eq!(hook.code, 1, "{hook}");
    stage.is_untouched(&node);
    assert_eq!(held(&stage, &node).1, json!({}));
}

/// The user may have no permission, for example.
#[test]
fn a_node_that_cannot_be_labeled_is_fenced_all_the_same() {
    let (stage, node) = Stage::with_unreachable_node("label-not");
    let proxy =
        stage.proxy(
            |method, path| match *method == Method::PATCH && path.contains(LABELLING) {
                true => Treatment::Answer(403, None),
                false => Treatment::Pass,
            },
        );
    let fence = ["fence", &node, "--powered-off=dark"];
    let run = stage.maint(fence).kubeconfig(&proxy.kubeconfig).run();
    assert_eq!(run.code, 0, "{run}");
    let message = format!("node/{node} is on hold without the held label: ");
    assert_eq!(run.stderr.matches(&message).count(), 1, "{run}");
    assert!(stage.is_tainted(&node));
    assert_eq!(held(&stage, &node), (Value::Null, json!({})));
    stage.comes_back(&node, "boot-2");
    let unfence = ["unfence", &node];
    stage
        .maint(unfence)
        .kubeconfig(&proxy.kubeconfig)
        .succeeds();
    stage.is_untouched(&node);
}
