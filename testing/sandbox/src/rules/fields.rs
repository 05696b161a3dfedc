//! Fields that a type does not have: they are dropped, reported in a warning, or refused, as the request says. Also
//! fields that a kind of request can't change.

use serde_json::Value;

use crate::resource::Resource;

const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

const LEASE: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

const LEASE_SPEC: [&str; 7] = [
    "acquireTime",
    "holderIdentity",
    "leaseDurationSeconds",
    "leaseTransitions",
    "preferredHolder",
    "renewTime",
    "strategy",
];

/// Drops fields that the type does not have, as far as the sandbox knows the type. Returns their names.
pub(super) fn drop_unknown(resource: &Resource, object: &mut Value) -> Vec<String> {
    let is_lease = &*resource.collection == "leases.coordination.k8s.io";
    let mut unknown = Vec::new();
    if is_lease {
        retain("", Some(&mut *object), &LEASE, &mut unknown);
    }
    retain(
        "metadata.",
        object.get_mut("metadata"),
        &METADATA,
        &mut unknown,
    );
    if is_lease {
        retain("spec.", object.get_mut("spec"), &LEASE_SPEC, &mut unknown);
    }
    unknown
}

fn retain(path: &str, part: Option<&mut Value>, known: &[&str], unknown: &mut Vec<String>) {
    if let Some(map) = part.and_then(Value::as_object_mut) {
        map.retain(|field, _| {
            let kept = known.contains(&field.as_str());
            if !kept {
                unknown.push(format!("unknown field \"{path}{field}\""));
            }
            kept
        });
    }
}

/// Sets `key` of `new` to its value in `old`.
pub(super) fn keep(old: &Value, new: &mut Value, key: &str) {
    match old.get(key) {
        Some(kept) => new[key] = kept.clone(),
        None => {
            if let Some(map) = new.as_object_mut() {
                map.remove(key);
            }
        }
    }
}
