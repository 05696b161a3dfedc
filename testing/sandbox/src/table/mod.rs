//! Objects as `kubectl get` shows them: columns and cells for each type.

mod age;
mod column;
mod event;
mod generic;
mod lease;
mod namespace;
mod node;
mod pod;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::resource::Resource;

/// The `columnDefinitions` of a type.
pub(crate) fn columns(resource: &Resource) -> Value {
    let columns = match &*resource.collection {
        "leases.coordination.k8s.io" => lease::COLUMNS,
        "nodes" => node::COLUMNS,
        "namespaces" => namespace::COLUMNS,
        "pods" => pod::COLUMNS,
        "events" => event::COLUMNS,
        _ => generic::COLUMNS,
    };
    columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": "string",
                "format": if column.name == "Name" { "name" } else { "" },
                "description": column.description,
                "priority": column.priority,
            })
        })
        .collect()
}

/// The cells of one object's row.
pub(crate) fn cells(resource: &Resource, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
    match &*resource.collection {
        "leases.coordination.k8s.io" => lease::cells(object, now),
        "nodes" => node::cells(object, now),
        "namespaces" => namespace::cells(object, now),
        "pods" => pod::cells(object, now),
        "events" => event::cells(object, now),
        _ => generic::cells(object, now),
    }
}
