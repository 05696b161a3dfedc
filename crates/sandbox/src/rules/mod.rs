//! What the server demands of objects, type by type, beyond what all of them share.

mod event;
mod lease;
mod metadata;
mod names;
mod namespace;
mod node;
mod pod;
pub(crate) mod time;

pub(crate) use namespace::FINALIZER as NAMESPACE_FINALIZER;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::failure::Cause;
use crate::object;
use crate::resource::Resource;
use crate::route::Subresource;

/// Reads a body as an object of the type: fills in kind and version, drops what the type doesn't
/// have, and brings times into the server's form.
///
/// # Errors
/// The decoder's complaint, for the caller to put into the answer of its verb.
pub(crate) fn read(resource: &Resource, object: &mut Value) -> Result<(), String> {
    let Some(map) = object.as_object_mut() else {
        return Err(cannot_be_handled(
            resource,
            "json: cannot unmarshal array into Go value",
        ));
    };
    let default = |text: &str| Value::from(text);
    map.entry("apiVersion")
        .or_insert_with(|| default(&resource.api_version()));
    map.entry("kind").or_insert_with(|| default(&resource.kind));
    let (api_version, kind) = (
        object::text(object, "/apiVersion").to_owned(),
        object::text(object, "/kind").to_owned(),
    );
    if kind != resource.kind {
        return Err(format!(
            "{kind} in version {:?} cannot be handled as a {}: converting ({api_version}.{kind}) to ({}.{}): unknown conversion",
            resource.version, resource.kind, resource.version, resource.kind,
        ));
    }
    if api_version != resource.api_version() {
        return Err(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            resource.api_version()
        ));
    }
    object::normalise(object);
    metadata::read(object).map_err(|why| cannot_be_handled(resource, &why))?;
    if &*resource.collection == "leases.coordination.k8s.io" {
        lease::read(object).map_err(|why| cannot_be_handled(resource, &why))?;
    }
    Ok(())
}

fn cannot_be_handled(resource: &Resource, why: &str) -> String {
    format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        resource.kind, resource.version, resource.kind
    )
}

/// Adds what the server adds to a new object of its type.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value, now: DateTime<Utc>) {
    match &*resource.collection {
        "namespaces" => namespace::prepare_create(object),
        "nodes" => node::prepare_create(object, now),
        "pods" => pod::prepare_create(object),
        _ => {}
    }
}

/// Keeps what this way of writing may not change, as it was.
pub(crate) fn prepare_update(
    resource: &Resource,
    subresource: Subresource,
    old: &Value,
    new: &mut Value,
) {
    match subresource {
        Subresource::None if resource.has_status => keep(old, new, "status"),
        Subresource::Status => keep(old, new, "spec"),
        Subresource::None | Subresource::Finalize => {}
    }
    if &*resource.collection == "namespaces" {
        namespace::prepare_update(subresource, old, new);
    }
}

/// Everything that is wrong with a new object.
pub(crate) fn violations(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = names::violations(resource, object);
    causes.extend(metadata::violations(object));
    causes.extend(own_violations(resource, object));
    causes
}

/// Everything that is wrong with a changed object.
pub(crate) fn update_violations(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = metadata::update_violations(old, new);
    causes.extend(metadata::violations(new));
    causes.extend(own_violations(resource, new));
    causes
}

fn own_violations(resource: &Resource, object: &Value) -> Vec<Cause> {
    match &*resource.collection {
        "leases.coordination.k8s.io" => lease::violations(object),
        "events" => event::violations(object),
        "nodes" => node::violations(object),
        _ => Vec::new(),
    }
}

/// The seconds that a deletion without a period of its own leaves the object; `None` where the
/// type is deleted at once.
pub(crate) fn grace_period(resource: &Resource, object: &Value, asked: Option<u64>) -> Option<u64> {
    match &*resource.collection {
        "pods" => Some(pod::grace_period(object, asked)),
        _ => None,
    }
}

/// Whether DELETE answers with the object rather than with a `Status`.
pub(crate) fn deletion_answers_object(resource: &Resource) -> bool {
    matches!(
        &*resource.collection,
        "pods" | "services" | "serviceaccounts"
    )
}

fn keep(old: &Value, new: &mut Value, key: &str) {
    match old.get(key) {
        Some(kept) => new[key] = kept.clone(),
        None => {
            if let Some(map) = new.as_object_mut() {
                map.remove(key);
            }
        }
    }
}
