//! The patches of a Node for fencing. The record and the taint are added and removed in one write. A hook is
//! announced before that, and the same writes remove its announcement.
//!
//! Each is a JSON merge patch on the version that was read. The server refuses it if the Node has changed
//! since, for example because its kubelet came back. The taints of others, and fields of a taint that we
//! don't know, stay as they are.

use k8s_openapi::api::core::v1::{Node, Taint};
use maintenance_lease::protocol::Instant;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::attempt::{self, Attempt};
use super::record::{ANNOTATION, Record};
use crate::constants::{OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE};
use crate::taint::{self, NO_EXECUTE, OutOfService, is_out_of_service};
use crate::wire::rfc3339;

/// The patch that announces a hook on `node`.
#[must_use]
pub fn announced(node: &Value, attempt: &Attempt) -> Value {
    on_version(node, &json!({attempt::ANNOTATION: attempt.print()}))
}

/// The patch that removes the announcement of a hook from `node`.
#[must_use]
pub fn withdrawn(node: &Value) -> Value {
    on_version(node, &json!({attempt::ANNOTATION: null}))
}

/// The patch that records a fencing on `node` and taints it from `now` on. If the node already has an
/// out-of-service taint that evicts pods, that taint is kept and no other is added.
#[must_use]
pub fn fenced(node: &Value, record: &Record, now: Instant) -> Value {
    let mut taints = taints(node);
    let typed: Vec<Taint> = taints.iter().filter_map(typed).collect();
    if !OutOfService::of(&typed).is_evicting() {
        taints.push(json!({
            "key": OUT_OF_SERVICE,
            "value": OUT_OF_SERVICE_VALUE,
            "effect": NO_EXECUTE,
            "timeAdded": rfc3339(now),
        }));
    }
    patch(node, &json!(record.print()), taints)
}

/// The patch that removes the record and all out-of-service taints from `node`.
#[must_use]
pub fn unfenced(node: &Value) -> Value {
    let mut taints = taints(node);
    taints.retain(|taint| !is_ours(taint));
    patch(node, &Value::Null, taints)
}

/// Whether `node` has an out-of-service taint, and whether it has our annotation.
#[must_use]
pub fn marks(node: &Node) -> (bool, bool) {
    let annotations = node.metadata.annotations.as_ref();
    let is_tainted = OutOfService::of(taint::taints(node)).is_asserted();
    (
        is_tainted,
        annotations.is_some_and(|all| all.contains_key(ANNOTATION)),
    )
}

fn patch(node: &Value, record: &Value, taints: Vec<Value>) -> Value {
    let annotations = json!({ANNOTATION: record, attempt::ANNOTATION: null});
    let mut patch = on_version(node, &annotations);
    // In a merge patch, null removes a list.
    patch["spec"] = json!({"taints": (!taints.is_empty()).then_some(taints)});
    patch
}

fn on_version(node: &Value, annotations: &Value) -> Value {
    let meta = &node["metadata"];
    json!({"metadata": {
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
        "annotations": annotations,
    }})
}

fn taints(node: &Value) -> Vec<Value> {
    node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn is_ours(taint: &Value) -> bool {
    typed(taint).is_some_and(|taint| is_out_of_service(&taint.key))
}

/// A taint as a typed object.
fn typed(taint: &Value) -> Option<Taint> {
    Taint::deserialize(taint).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_micros(5_000_000);

    fn node(taints: &Value) -> Value {
        json!({
            "metadata": {"name": "worker-1", "uid": "u", "resourceVersion": "7"},
            "spec": {"taints": taints},
        })
    }

    #[test]
    fn fencing_adds_to_the_taints_that_are_there_on_the_version_that_was_read() {
        let other = json!({"key": "gpu", "effect": "NoSchedule", "futureField": 1});
        let patch = fenced(&node(&json!([other])), &Record::example(), NOW);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["metadata"]["uid"], "u");
        let text = patch["metadata"]["annotations"][ANNOTATION].as_str();
        assert_eq!(text.and_then(Record::parse), Some(Record::example()));
        let ours = json!({
            "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
            "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:05Z",
        });
        assert_eq!(patch["spec"]["taints"], json!([other, ours]));
    }

    #[test]
    fn a_taint_of_somebody_else_stays_and_is_enough_if_it_evicts() {
        let theirs = |effect: &str| json!({"key": OUT_OF_SERVICE, "value": "x", "effect": effect});
        let taints_beside = |theirs: &Value| {
            let patch = fenced(&node(&json!([theirs])), &Record::example(), NOW);
            patch["spec"]["taints"].as_array().cloned()
        };
        let evicting = theirs("NoExecute");
        assert_eq!(taints_beside(&evicting), Some(vec![evicting]));
        for effect in ["NoSchedule", "PreferNoSchedule"] {
            let theirs = theirs(effect);
            let both = taints_beside(&theirs).expect("taints");
            assert_eq!((both.len(), &both[0]), (2, &theirs));
            assert_eq!(both[1]["value"], "nodeshutdown");
            assert_eq!(both[1]["effect"], "NoExecute");
        }
    }

    #[test]
    fn a_hook_is_announced_on_the_version_that_was_read_and_goes_with_the_record() {
        let attempt = Attempt {
            id: "n".to_owned(),
            who: "alice".to_owned(),
            program: "hook".to_owned(),
            since: NOW,
            until: NOW,
        };
        let node = node(&json!([]));
        let patch = announced(&node, &attempt);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let text = patch["metadata"]["annotations"][attempt::ANNOTATION].as_str();
        assert_eq!(text.and_then(Attempt::parse), Some(attempt));
        assert_eq!(patch["spec"], Value::Null);
        for patch in [withdrawn(&node), fenced(&node, &Record::example(), NOW)] {
            let annotations = patch["metadata"]["annotations"].as_object();
            let withdrawn = annotations.and_then(|all| all.get(attempt::ANNOTATION));
            assert_eq!(withdrawn, Some(&Value::Null));
        }
    }

    #[test]
    fn a_taint_of_any_effect_or_a_record_is_left() {
        let other = json!({"key": "gpu", "effect": "NoSchedule"});
        let taint = json!({"key": OUT_OF_SERVICE, "value": "x", "effect": "NoSchedule"});
        let on = |seen: &Value| marks(&Node::deserialize(seen).expect("a Node"));
        let mut seen = node(&json!([other]));
        assert_eq!(on(&seen), (false, false));
        seen["metadata"]["annotations"] = json!({ANNOTATION: "unreadable"});
        assert_eq!(on(&seen), (false, true));
        seen["spec"]["taints"] = json!([other, taint]);
        assert_eq!(on(&seen), (true, true));
        assert_eq!(on(&node(&json!([taint]))), (true, false));
    }

    #[test]
    fn unfencing_leaves_the_others() {
        let other = json!({"key": "gpu", "effect": "NoSchedule"});
        let ours = json!({"key": OUT_OF_SERVICE, "effect": "NoExecute"});
        let theirs = json!({"key": OUT_OF_SERVICE, "value": "x", "effect": "NoSchedule"});
        let patch = unfenced(&node(&json!([ours, other, theirs])));
        assert_eq!(patch["spec"]["taints"], json!([other]));
        let none = json!({ANNOTATION: null, attempt::ANNOTATION: null});
        assert_eq!(patch["metadata"]["annotations"], none);
        let patch = unfenced(&node(&json!([ours])));
        assert!(patch["spec"]["taints"].is_null(), "{patch}");
    }
}
