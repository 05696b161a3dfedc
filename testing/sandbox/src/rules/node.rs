//! Nodes: a new one has a taint until a controller has seen it ready.

use serde_json::{Value, json};

use crate::cause::Cause;
use crate::object;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The times of conditions are always present, even if they are null. `unschedulable` is absent
/// unless the node is cordoned.
pub(super) fn read(object: &mut Value) {
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(condition) = condition.as_object_mut() {
            condition.entry("lastHeartbeatTime").or_insert(Value::Null);
            condition.entry("lastTransitionTime").or_insert(Value::Null);
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, value| key != "unschedulable" || *value == Value::Bool(true));
    }
}

pub(super) fn prepare_create(object: &mut Value) {
    let tainted = object::array(object, "/spec/taints")
        .iter()
        .any(|taint| object::text(taint, "/key") == NOT_READY);
    if !tainted {
        let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
        let spec = object::map_mut(object, "spec");
        match spec.get_mut("taints").and_then(Value::as_array_mut) {
            Some(taints) => taints.push(taint),
            None => {
                spec.insert("taints".to_owned(), json!([taint]));
            }
        }
    }
    let status = object::map_mut(object, "status");
    status
        .entry("daemonEndpoints")
        .or_insert_with(|| json!({"kubeletEndpoint": {"Port": 0}}));
    status.entry("nodeInfo").or_insert_with(|| {
        json!({
            "architecture": "",
            "bootID": "",
            "containerRuntimeVersion": "",
            "kernelVersion": "",
            "kubeProxyVersion": "",
            "kubeletVersion": "",
            "machineID": "",
            "operatingSystem": "",
            "osImage": "",
            "systemUUID": "",
        })
    });
}

pub(super) fn violations(object: &Value) -> Vec<Cause> {
    object::array(object, "/spec/taints")
        .iter()
        .enumerate()
        .filter(|(_, taint)| object::text(taint, "/key").is_empty())
        .map(|(index, _)| {
            Cause::invalid(
                &format!("spec.taints[{index}].key"),
                "\"\"",
                "name part must be non-empty",
            )
        })
        .collect()
}
