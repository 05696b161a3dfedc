//! The rules for `metadata`, which all types share.

use serde_json::{Value, json};

use super::{names, time};
use crate::cause::Cause;
use crate::object;

const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Checks the types of the fields, and converts times to the server's format.
pub(super) fn read(object: &mut Value) -> Result<(), String> {
    let metadata = object::metadata_mut(object);
    for key in ["labels", "annotations"] {
        let Some(value) = metadata.get(key) else {
            continue;
        };
        let map = value
            .as_object()
            .ok_or_else(|| mismatch(value, key, "map[string]string"))?;
        if let Some(wrong) = map.values().find(|value| !value.is_string()) {
            return Err(mismatch(wrong, key, "string"));
        }
    }
    for key in [
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
    ] {
        if let Some(value) = metadata.get(key).filter(|value| !value.is_string()) {
            return Err(mismatch(value, key, "string"));
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = metadata.get_mut(key) {
            *value = time::read_seconds(value.as_str().unwrap_or_default())?.into();
        }
    }
    for unkept in ["managedFields", "selfLink"] {
        metadata.remove(unkept);
    }
    Ok(())
}

fn mismatch(value: &Value, key: &str, expected: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!(
        "json: cannot unmarshal {found} into Go struct field ObjectMeta.metadata.{key} of type {expected}"
    )
}

/// The errors in labels, annotations, owners and finalizers.
pub(super) fn violations(object: &Value) -> Vec<Cause> {
    [changeable(object), finalizers(object)].concat()
}

/// The errors that changes and creations can have.
fn changeable(object: &Value) -> Vec<Cause> {
    [labels(object), annotations(object), owners(object)].concat()
}

fn labels(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in entries(object, "labels") {
        for why in names::key(key) {
            causes.push(Cause::invalid("metadata.labels", &format!("{key:?}"), &why));
        }
        for why in names::label_value(value) {
            causes.push(Cause::invalid(
                "metadata.labels",
                &format!("{value:?}"),
                &why,
            ));
        }
    }
    causes
}

fn annotations(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut bytes = 0;
    for (key, value) in entries(object, "annotations") {
        bytes += key.len() + value.len();
        for why in names::key(&key.to_lowercase()) {
            causes.push(Cause::invalid(
                "metadata.annotations",
                &format!("{key:?}"),
                &why,
            ));
        }
    }
    if bytes > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for owner in object::array(object, "/metadata/ownerReferences") {
        for (key, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if object::text(owner, &format!("/{key}")).is_empty() {
                let field = format!("metadata.ownerReferences.{key}");
                causes.push(Cause::invalid(&field, "\"\"", why));
            }
        }
    }
    causes
}

fn finalizers(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for name in object::texts(object, "/metadata/finalizers") {
        for why in names::key(name) {
            let shown = format!("{name:?}");
            causes.push(Cause::invalid("metadata.finalizers", &shown, &why));
        }
    }
    causes
}

fn entries<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    object
        .pointer(&format!("/metadata/{key}"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

/// The changes of metadata that an update may not make.
pub(super) fn update_violations(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if object::is_terminating(old) {
        let before = object::texts(old, "/metadata/finalizers");
        let added: Vec<String> = object::texts(new, "/metadata/finalizers")
            .into_iter()
            .filter(|name| !before.contains(name))
            .map(|name| format!("{name:?}"))
            .collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    for key in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = new["metadata"].get(key);
        if value != old["metadata"].get(key) {
            let shown = value.unwrap_or(&json!(null)).to_string();
            let field = format!("metadata.{key}");
            causes.push(Cause::invalid(&field, &shown, "field is immutable"));
        }
    }
    causes.extend(changeable(new));
    causes
}
