//! Pods: their defaults, and their grace period.

use serde_json::{Map, Value, json};

use crate::object;

const DEFAULT_GRACE_SECONDS: u64 = 30;

pub(super) fn prepare_create(object: &mut Value) {
    object::set_metadata(object, "generation", Some(1.into()));
    let tolerations = ["not-ready", "unreachable"].map(|condition| {
        json!({
            "effect": "NoExecute",
            "key": format!("node.kubernetes.io/{condition}"),
            "operator": "Exists",
            "tolerationSeconds": 300,
        })
    });
    let spec = object::map_mut(object, "spec");
    add_missing(
        spec,
        &json!({
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": DEFAULT_GRACE_SECONDS,
            "tolerations": tolerations,
        }),
    );
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let latest = is_latest(object::text(container, "/image"));
        if let Some(container) = container.as_object_mut() {
            add_missing(
                container,
                &json!({
                    "imagePullPolicy": if latest { "Always" } else { "IfNotPresent" },
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }),
            );
        }
    }
    object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
}

fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn add_missing(map: &mut Map<String, Value>, defaults: &Value) {
    for (key, value) in defaults.as_object().into_iter().flatten() {
        map.entry(key).or_insert_with(|| value.clone());
    }
}

/// A pod without a node, or one that has ended, has no grace period.
pub(super) fn grace_period(object: &Value, requested: Option<u64>) -> u64 {
    let unscheduled = object::text(object, "/spec/nodeName").is_empty();
    let done = matches!(
        object::text(object, "/status/phase"),
        "Succeeded" | "Failed"
    );
    if unscheduled || done {
        return 0;
    }
    requested.unwrap_or_else(|| {
        object
            .pointer("/spec/terminationGracePeriodSeconds")
            .and_then(Value::as_u64)
            .unwrap_or(DEFAULT_GRACE_SECONDS)
    })
}
