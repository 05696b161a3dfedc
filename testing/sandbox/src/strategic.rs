//! Strategic merge patches, as far as kubectl's cordon, label, annotate, edit and apply need them.

use serde_json::{Map, Value};

/// How a patch identifies the items of a list.
enum Items {
    /// By the value of this field.
    Keyed(&'static str),
    /// The items are plain values, and the list is a set.
    Set,
    /// It does not: a patch replaces the whole list.
    Atomic,
}

impl Items {
    /// The rule for a list with this name, in the types that people patch.
    fn of(field: &str) -> Self {
        match field {
            "ownerReferences" => Self::Keyed("uid"),
            "conditions" | "addresses" => Self::Keyed("type"),
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "volumes"
            | "env"
            | "imagePullSecrets"
            | "secrets" => Self::Keyed("name"),
            "volumeMounts" => Self::Keyed("mountPath"),
            "hostAliases" => Self::Keyed("ip"),
            "finalizers" | "podCIDRs" => Self::Set,
            _ => Self::Atomic,
        }
    }
}

/// Merges `patch` into `object`.
///
/// # Errors
/// If a directive does not exist, or a list item lacks the field that identifies it.
pub(crate) fn merge(object: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        return Err("Invalid JSON Patch".to_owned());
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            let mut replacement = patch.clone();
            replacement.remove("$patch");
            *object = replacement.into();
            return Ok(());
        }
        Some("delete") => {
            *object = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(format!("Unknown patch type: {other}")),
    }
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    retain_keys(fields, patch);
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            remove_values(fields.get_mut(list), change);
        } else if !name.starts_with('$') {
            merge_field(fields, name, change)?;
        }
    }
    Ok(())
}

/// `$retainKeys` lists the only fields that stay.
fn retain_keys(fields: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if let Some(kept) = patch.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|name, _| kept.iter().any(|k| k == name.as_str()));
    }
}

fn remove_values(list: Option<&mut Value>, values: &Value) {
    if let (Some(list), Some(values)) = (list.and_then(Value::as_array_mut), values.as_array()) {
        list.retain(|item| !values.contains(item));
    }
}

fn merge_field(fields: &mut Map<String, Value>, name: &str, change: &Value) -> Result<(), String> {
    match change {
        Value::Null => {
            fields.remove(name);
            Ok(())
        }
        Value::Object(_) => merge(fields.entry(name).or_insert(Value::Null), change),
        Value::Array(changes) => {
            let current = fields.remove(name);
            let current = match current {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            fields.insert(name.to_owned(), merge_list(name, current, changes)?.into());
            Ok(())
        }
        plain => {
            fields.insert(name.to_owned(), plain.clone());
            Ok(())
        }
    }
}

fn merge_list(name: &str, mut items: Vec<Value>, changes: &[Value]) -> Result<Vec<Value>, String> {
    let directive = |change: &Value| change["$patch"].as_str().map(str::to_owned);
    match Items::of(name) {
        Items::Atomic => Ok(changes
            .iter()
            .filter(|change| directive(change).is_none())
            .cloned()
            .collect()),
        Items::Set => {
            for change in changes {
                if !items.contains(change) {
                    items.push(change.clone());
                }
            }
            Ok(items)
        }
        Items::Keyed(key) => {
            if changes
                .iter()
                .any(|c| directive(c).as_deref() == Some("replace"))
            {
                items.clear();
            }
            for change in changes {
                if change.get("$patch").is_some() && change.get(key).is_none() {
                    continue;
                }
                let id = change.get(key).ok_or_else(|| {
                    format!("map: {change} does not contain declared merge key: {key}")
                })?;
                let position = items.iter().position(|item| item.get(key) == Some(id));
                match (position, directive(change).as_deref()) {
                    (Some(at), Some("delete")) => drop(items.remove(at)),
                    (None, Some("delete")) => {}
                    (Some(at), _) => merge(&mut items[at], change)?,
                    (None, _) => {
                        let mut added = Value::Null;
                        merge(&mut added, change)?;
                        items.push(added);
                    }
                }
            }
            Ok(items)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(mut object: Value, patch: &Value, expected: &Value) {
        merge(&mut object, patch).unwrap();
        assert_eq!(&object, expected);
    }

    #[test]
    fn plain_fields_merge_and_null_removes() {
        check(
            json!({"spec": {"a": 1, "b": 2}}),
            &json!({"spec": {"a": null, "unschedulable": true}}),
            &json!({"spec": {"b": 2, "unschedulable": true}}),
        );
    }

    #[test]
    fn keyed_lists_merge_item_by_item() {
        check(
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old"}]}}),
            &json!({"status": {
                "$setElementOrder/conditions": [{"type": "Ready"}],
                "conditions": [
                    {"type": "Ready", "status": "False"},
                    {"type": "Old", "$patch": "delete"},
                    {"type": "New"},
                ],
            }}),
            &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "New"}]}}),
        );
    }

    #[test]
    fn taints_are_replaced_and_finalizers_united() {
        check(
            json!({"spec": {"taints": [{"key": "a"}]}, "metadata": {"finalizers": ["x", "y"]}}),
            &json!({"spec": {"taints": [{"key": "b"}]}, "metadata": {"$deleteFromPrimitiveList/finalizers": ["y"], "finalizers": ["z"]}}),
            &json!({"spec": {"taints": [{"key": "b"}]}, "metadata": {"finalizers": ["x", "z"]}}),
        );
    }

    #[test]
    fn an_item_without_its_key_is_refused() {
        assert!(merge(&mut json!({}), &json!({"conditions": [{"status": "True"}]})).is_err());
    }
}
