//! The forms of an answer: whole objects, their metadata, or table rows.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::resource::Resource;
use crate::verbs::List;
use crate::{object, table};

/// The form that the `Accept` header of the reader requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Objects,
    Metadata,
    Table,
}

/// How much of its object a table row contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Representation {
    /// Chooses the first form that the server supports.
    pub(crate) fn negotiate(accept: &str) -> Result<Self, Failure> {
        if accept.trim().is_empty() {
            return Ok(Self::Objects);
        }
        accept
            .split(',')
            .find_map(Self::read)
            .ok_or_else(Failure::not_acceptable)
    }

    fn read(clause: &str) -> Option<Self> {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next()?;
        if !matches!(media_type, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let mut parameters = parts.filter_map(|part| part.split_once('='));
        match parameters.find(|(name, _)| *name == "as") {
            None => Some(Self::Objects),
            Some((_, "Table")) => Some(Self::Table),
            Some((_, "PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                Some(Self::Metadata)
            }
            Some(_) => None,
        }
    }
}

impl Include {
    pub(crate) fn read(query: Option<&str>) -> Result<Self, Failure> {
        match query {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::Nothing),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Failure::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// How an answer or a watch writes the objects of a type.
#[derive(Clone, Debug)]
pub(crate) struct Renderer {
    pub(crate) resource: Arc<Resource>,
    pub(crate) representation: Representation,
    pub(crate) include: Include,
    pub(crate) now: DateTime<Utc>,
}

impl Renderer {
    /// One object, as an answer or in a watch event.
    pub(crate) fn object(&self, object: &Value) -> String {
        match self.representation {
            Representation::Objects => object.to_string(),
            Representation::Metadata => partial(object).to_string(),
            Representation::Table => {
                let version = object::resource_version(object);
                let metadata = json!({"resourceVersion": version});
                let columns = table::columns(&self.resource);
                self.table(&metadata, &columns, [object]).to_string()
            }
        }
    }

    /// A row of a table whose columns were sent before.
    pub(crate) fn bare_row(&self, object: &Value) -> String {
        let metadata = json!({"resourceVersion": object::resource_version(object)});
        self.table(&metadata, &Value::Null, [object]).to_string()
    }

    pub(crate) fn list(&self, list: &List) -> String {
        let mut metadata = json!({"resourceVersion": list.revision.to_string()});
        if !list.next.is_empty() {
            metadata["continue"] = list.next.clone().into();
        }
        if let Some(remaining) = list.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        match self.representation {
            Representation::Objects => to_json(&ObjectList {
                resource: &self.resource,
                metadata: &metadata,
                items: &list.items,
            }),
            Representation::Metadata => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": list.items.iter().map(|item| partial(item)).collect::<Vec<_>>(),
            })
            .to_string(),
            Representation::Table => {
                let objects = list.items.iter().map(|item| &**item);
                let columns = table::columns(&self.resource);
                self.table(&metadata, &columns, objects).to_string()
            }
        }
    }

    fn table<'a>(
        &self,
        metadata: &Value,
        columns: &Value,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Value {
        let rows: Vec<Value> = objects
            .into_iter()
            .map(|object| {
                json!({
                    "cells": table::cells(&self.resource, object, self.now),
                    "object": self.included(object),
                })
            })
            .collect();
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn included(&self, object: &Value) -> Value {
        match self.include {
            Include::Nothing => Value::Null,
            Include::Metadata => partial(object),
            Include::Object => object.clone(),
        }
    }
}

fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("maps with text keys always serialise")
}

/// A list whose items are written without a copy.
struct ObjectList<'a> {
    resource: &'a Resource,
    metadata: &'a Value,
    items: &'a [Arc<Value>],
}

impl Serialize for ObjectList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items: Vec<Item<'_>> = self
            .items
            .iter()
            .filter_map(|i| i.as_object())
            .map(Item)
            .collect();
        let mut list = serializer.serialize_map(Some(4))?;
        list.serialize_entry("kind", &format!("{}List", self.resource.kind))?;
        list.serialize_entry("apiVersion", &self.resource.api_version())?;
        list.serialize_entry("metadata", self.metadata)?;
        list.serialize_entry("items", &items)?;
        list.end()
    }
}

/// An item of a list, without its kind and version, which the list has.
struct Item<'a>(&'a Map<String, Value>);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let own = |key: &&String| !matches!(key.as_str(), "kind" | "apiVersion");
        serializer.collect_map(self.0.iter().filter(|(key, _)| own(key)))
    }
}
