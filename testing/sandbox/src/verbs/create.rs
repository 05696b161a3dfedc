//! POST.

use serde_json::Value;

use super::call::{Call, Outcome, check_namespace};
use crate::failure::Failure;
use crate::resource::Resource;
use crate::route::key;
use crate::server::State;
use crate::{object, rules, versions};

pub(crate) fn create(call: &Call<'_>, mut body: Value) -> Result<Outcome, Failure> {
    let resource = call.resource();
    if resource.namespaced && call.target.namespace.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let dry_run = call.query.dry_run("CreateOptions")?;
    call.read(&mut body)?;
    check_namespace(call, &mut body)?;
    call.server.change(|state| {
        let stored = insert(call, state, body, dry_run)?;
        Ok(Outcome::Object(201, call.served(&stored.into())))
    })
}

/// Creates the object, for POST and for a PUT to a free name.
pub(super) fn insert(
    call: &Call<'_>,
    state: &mut State,
    mut object: Value,
    dry_run: bool,
) -> Result<Value, Failure> {
    let resource = call.resource();
    let requested_name = object::name(&object).to_owned();
    check_namespace_is_open(call, state, resource, &requested_name)?;
    generate_name(state, &mut object);
    let now = call.server.now();
    let system_fields = [
        ("uid", Some(state.identities.uid().into())),
        ("creationTimestamp", Some(rules::time::seconds(now).into())),
        ("deletionTimestamp", None),
        ("deletionGracePeriodSeconds", None),
    ];
    for (field, value) in system_fields {
        object::set_metadata(&mut object, field, value);
    }
    let mut object = versions::stored(resource, object);
    rules::prepare_create(resource, &mut object);
    let name = object::name(&object).to_owned();
    let causes = rules::violations(resource, &object);
    if !causes.is_empty() {
        return Err(Failure::invalid(resource, &name, &causes));
    }
    if !object::resource_version(&object).is_empty() {
        return Err(Failure::unexplained(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let key = key(&call.target.namespace, &name);
    if state.store.get(resource, &key).is_some() {
        return Err(Failure::already_exists(resource, &name));
    }
    if dry_run {
        return Ok(object);
    }
    Ok(Value::clone(&state.store.put(resource, &key, object)))
}

fn generate_name(state: &mut State, object: &mut Value) {
    let stem = object::text(object, "/metadata/generateName").to_owned();
    if object::name(object).is_empty() && !stem.is_empty() {
        let name = format!("{stem}{}", state.identities.suffix());
        object::set_metadata(object, "name", Some(name.into()));
    }
}

/// The namespace of a new object must exist and must not be terminating.
fn check_namespace_is_open(
    call: &Call<'_>,
    state: &State,
    resource: &Resource,
    name: &str,
) -> Result<(), Failure> {
    if !resource.namespaced {
        return Ok(());
    }
    let namespace = call.target.namespace.as_str();
    let namespaces = call
        .server
        .catalog
        .by_collection("namespaces")
        .ok_or_else(Failure::unknown_path)?;
    match state.store.get(namespaces, namespace) {
        None => Err(Failure::not_found(namespaces, namespace)),
        Some(found) if object::is_terminating(found) => {
            Err(Failure::terminating(resource, name, namespace))
        }
        Some(_) => Ok(()),
    }
}
