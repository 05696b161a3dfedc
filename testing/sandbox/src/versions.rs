//! Events are one collection with two API versions, whose fields have different names.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::resource::Resource;

/// The names of an event's fields in the core group and in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The form in which the store keeps an object of this type.
pub(crate) fn stored(resource: &Resource, object: Value) -> Value {
    if resource.group == "events.k8s.io" {
        renamed(object, "v1", |(core, own)| (own, core))
    } else {
        object
    }
}

/// The form in which a stored object is returned as this type. Some fields of events are shown even if they are empty.
pub(crate) fn served(resource: &Resource, object: &Arc<Value>) -> Arc<Value> {
    if &*resource.collection != "events" {
        return object.clone();
    }
    let mut event = Value::clone(object);
    if let Some(fields) = event.as_object_mut() {
        for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
            fields.entry(field).or_insert(Value::Null);
        }
        fields.entry("source").or_insert_with(|| json!({}));
    }
    if resource.group == "events.k8s.io" {
        event = renamed(event, "events.k8s.io/v1", |names| names);
    } else if let Some(fields) = event.as_object_mut() {
        for field in ["reportingComponent", "reportingInstance"] {
            fields.entry(field).or_insert_with(|| "".into());
        }
    }
    Arc::new(event)
}

fn renamed(
    mut event: Value,
    api_version: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    if let Some(fields) = event.as_object_mut() {
        for (from, to) in EVENT_FIELDS.map(direction) {
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
        fields.insert("apiVersion".to_owned(), api_version.into());
    }
    event
}
