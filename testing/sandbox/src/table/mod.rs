//! Objects as `kubectl get` shows them: columns and cells, type by type.

mod age;
mod event;
mod generic;
mod lease;
mod namespace;
mod node;
mod pod;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::object;
use crate::resource::Resource;

/// One column of a table.
pub(crate) struct Column {
    name: &'static str,
    description: &'static str,
    /// Above 0 for `-o wide` only.
    priority: u8,
}

impl Column {
    const fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            priority: 0,
        }
    }

    const fn wide(name: &'static str, description: &'static str) -> Self {
        Self {
            priority: 1,
            ..Self::new(name, description)
        }
    }
}

const NAME: Column = Column::new("Name", "The name of the object.");
const AGE: Column = Column::new("Age", "How long ago the object was created.");

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

/// The cell of the `Age` column.
fn age_of(object: &Value, now: DateTime<Utc>) -> Value {
    age::since(object::text(object, "/metadata/creationTimestamp"), now).into()
}
