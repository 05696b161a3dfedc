//! The rules of the server for objects, by type and for all types.

mod event;
mod fields;
mod lease;
mod metadata;
mod names;
mod namespace;
mod node;
mod pod;
pub(crate) mod time;

pub(crate) use namespace::FINALIZER as NAMESPACE_FINALIZER;

use serde_json::Value;

use crate::cause::Cause;
use crate::failure::Failure;
use crate::object;
use crate::resource::Resource;
use crate::route::Subresource;

/// A body that can't be read as an object of its type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unreadable {
    /// The body says that it has another type.
    WrongType(String),
    /// A field does not have the right type.
    Malformed(String),
}

impl Unreadable {
    /// The refusal of a POST or PUT.
    pub(crate) fn of_body(self, resource: &Resource) -> Failure {
        Failure::bad_request(match self {
            Self::WrongType(why) => why,
            Self::Malformed(why) => cannot_be_handled(resource, &why),
        })
    }

    /// The refusal of a patch with this result.
    pub(crate) fn of_patch(self, patched: &Value) -> Failure {
        let (Self::WrongType(why) | Self::Malformed(why)) = self;
        Failure::unreadable_patch(patched, &why)
    }
}

/// Reads a body as an object of the type: adds the kind and version, drops fields that the type
/// does not have, and converts times to the server's format. Returns messages about the dropped
/// fields.
pub(crate) fn read(resource: &Resource, object: &mut Value) -> Result<Vec<String>, Unreadable> {
    check_type(resource, object)?;
    object::normalise(object);
    let unknown = fields::drop_unknown(resource, object);
    metadata::read(object).map_err(Unreadable::Malformed)?;
    match &*resource.collection {
        "leases.coordination.k8s.io" => lease::read(object).map_err(Unreadable::Malformed)?,
        "nodes" => node::read(object),
        _ => {}
    }
    Ok(unknown)
}

fn check_type(resource: &Resource, object: &mut Value) -> Result<(), Unreadable> {
    let Some(map) = object.as_object_mut() else {
        let why = "json: cannot unmarshal array into Go value of type map[string]interface {}";
        return Err(Unreadable::Malformed(why.to_owned()));
    };
    map.entry("apiVersion")
        .or_insert_with(|| resource.api_version().into());
    map.entry("kind")
        .or_insert_with(|| resource.kind.clone().into());
    let api_version = object::text(object, "/apiVersion");
    let kind = object::text(object, "/kind");
    if kind != resource.kind {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let target = resource.group.split('.').next().unwrap_or_default();
        return Err(Unreadable::WrongType(format!(
            "{kind} in version {version:?} cannot be handled as a {}: converting ({version}.{kind}) to ({target}.{}): unknown conversion",
            resource.kind, resource.kind,
        )));
    }
    if api_version != resource.api_version() {
        return Err(Unreadable::WrongType(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            resource.api_version()
        )));
    }
    Ok(())
}

pub(crate) fn cannot_be_handled(resource: &Resource, why: &str) -> String {
    format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        resource.kind, resource.version, resource.kind
    )
}

/// Adds the defaults of the server to a new object.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    match &*resource.collection {
        "namespaces" => namespace::prepare_create(object),
        "nodes" => node::prepare_create(object),
        "pods" => pod::prepare_create(object),
        _ => {}
    }
}

/// Restores the fields that this kind of request can't change.
pub(crate) fn prepare_update(
    resource: &Resource,
    subresource: Subresource,
    old: &Value,
    new: &mut Value,
) {
    match subresource {
        Subresource::None if resource.has_status => fields::keep(old, new, "status"),
        Subresource::Status => fields::keep(old, new, "spec"),
        Subresource::None | Subresource::Finalize => {}
    }
    if &*resource.collection == "namespaces" {
        namespace::prepare_update(subresource, old, new);
    }
}

/// All errors in a new object.
pub(crate) fn violations(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = names::violations(resource, object);
    causes.extend(metadata::violations(object));
    causes.extend(own_violations(resource, object));
    causes
}

/// All errors in a changed object.
pub(crate) fn update_violations(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    // The server checks metadata for all types, then again with the rules of the type, and reports
    // all errors.
    let change = metadata::update_violations(old, new);
    let mut causes = [metadata::violations(new), change.clone(), change].concat();
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

/// The grace period of a deletion in seconds. `None` if objects of the type are deleted at once.
pub(crate) fn grace_period(
    resource: &Resource,
    object: &Value,
    requested: Option<u64>,
) -> Option<u64> {
    match &*resource.collection {
        "pods" => Some(pod::grace_period(object, requested)),
        _ => None,
    }
}

/// Whether DELETE answers with the object instead of a `Status`.
pub(crate) fn deletion_answers_object(resource: &Resource) -> bool {
    matches!(
        &*resource.collection,
        "pods" | "services" | "serviceaccounts"
    )
}

/// The fields that the server shows even if they are empty.
pub(crate) fn parts_shown_when_empty(resource: &Resource) -> &'static [&'static str] {
    match &*resource.collection {
        "leases.coordination.k8s.io" => &["spec"],
        "namespaces" | "nodes" | "pods" => &["spec", "status"],
        _ => &[],
    }
}
