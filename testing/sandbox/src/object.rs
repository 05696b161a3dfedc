//! Access to the parts that all objects share.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value};

use crate::rules::time;

/// The text at `pointer`, or an empty text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// Whether the object was deleted, and something still keeps it.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The texts in an array such as `metadata.finalizers`.
pub(crate) fn texts<'a>(object: &'a Value, pointer: &str) -> Vec<&'a str> {
    array(object, pointer)
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// The array at `pointer`, or an empty one.
pub(crate) fn array<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The `metadata` of an object. Created if it is missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_mut(object, "metadata")
}

/// The map at `key`. Created if it is missing; any other value is replaced.
pub(crate) fn map_mut<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !object[key].is_object() {
        object[key] = Value::Object(Map::new());
    }
    object[key].as_object_mut().expect("just made a map")
}

/// Sets `metadata.key` to `value`, or removes the key.
pub(crate) fn set_metadata(object: &mut Value, key: &str, value: Option<Value>) {
    let metadata = metadata_mut(object);
    match value {
        Some(value) => {
            metadata.insert(key.to_owned(), value);
        }
        None => {
            metadata.remove(key);
        }
    }
}

/// Removes nulls at any depth, and empty maps below `metadata`, because the server's types do not
/// keep them.
pub(crate) fn normalise(object: &mut Value) {
    remove_nulls(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| match value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Sets the fields of a deletion that must wait: its time and its grace period.
pub(crate) fn mark_terminating(object: &mut Value, now: DateTime<Utc>, grace: u64) {
    let grace_time = TimeDelta::seconds(i64::try_from(grace).unwrap_or(i64::MAX / 1000));
    let ends = now.checked_add_signed(grace_time).unwrap_or(now);
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), time::seconds(ends).into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
}
