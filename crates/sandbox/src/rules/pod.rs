//! Pods: their defaults, and the grace that they are given to end in.

use serde_json::{Value, json};

use crate::object;

const DEFAULT_GRACE_SECONDS: u64 = 30;

pub(super) fn prepare_create(object: &mut Value) {
    let spec = object::map_mut(object, "spec");
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
        (
            "terminationGracePeriodSeconds",
            json!(DEFAULT_GRACE_SECONDS),
        ),
    ] {
        spec.entry(key).or_insert(value);
    }
    object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
}

/// A pod that runs nowhere, or runs no longer, needs no grace.
pub(super) fn grace_period(object: &Value, asked: Option<u64>) -> u64 {
    let unscheduled = object::text(object, "/spec/nodeName").is_empty();
    let done = matches!(
        object::text(object, "/status/phase"),
        "Succeeded" | "Failed"
    );
    if unscheduled || done {
        return 0;
    }
    asked.unwrap_or_else(|| {
        object
            .pointer("/spec/terminationGracePeriodSeconds")
            .and_then(Value::as_u64)
            .unwrap_or(DEFAULT_GRACE_SECONDS)
    })
}
