//! PUT, and the second half of PATCH: changes an existing object.

use std::sync::Arc;

use serde_json::Value;

use super::call::{Call, Outcome, check_namespace};
use super::create::insert;
use crate::failure::Failure;
use crate::managed::{self, Manager};
use crate::route::Subresource;
use crate::server::State;
use crate::{object, rules, versions};

/// PUT.
pub(crate) fn replace(call: &Call<'_>, mut body: Value) -> Result<Outcome, Failure> {
    let resource = call.resource();
    let dry_run = call.query.dry_run("UpdateOptions")?;
    call.read(&mut body)?;
    check_namespace(call, &mut body)?;
    check_name(call, &body)?;
    call.server.change(|state| {
        let Some(old) = state.store.get(resource, &call.target.key()).cloned() else {
            return put_back(call, state, body, dry_run);
        };
        let uid = object::uid(&body);
        if !uid.is_empty() && uid != object::uid(&old) {
            return Err(uid_conflict(call, uid, object::uid(&old)));
        }
        let body = versions::stored(resource, body);
        let stored = update(call, state, &old, body, dry_run)?;
        Ok(Outcome::Object(200, call.served(&stored)))
    })
}

/// A PUT to a free name creates the object if the type allows it. This also applies to a deleted
/// object, whatever the resource version in the body is. Only a uid shows that another object was
/// meant.
fn put_back(
    call: &Call<'_>,
    state: &mut State,
    body: Value,
    dry_run: bool,
) -> Result<Outcome, Failure> {
    if !call.resource().put_creates || call.target.subresource != Subresource::None {
        return Err(call.not_found());
    }
    let uid = object::uid(&body);
    if !uid.is_empty() {
        return Err(uid_conflict(call, uid, ""));
    }
    let mut body = body;
    object::set_metadata(&mut body, "resourceVersion", None);
    let stored = insert(call, state, body, dry_run)?;
    Ok(Outcome::Object(201, call.served(&stored.into())))
}

pub(super) fn uid_conflict(call: &Call<'_>, required: &str, found: &str) -> Failure {
    let (plural, key) = (&call.resource().plural, call.target.key());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{plural}/{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {required}, UID in object meta: {found}"
    );
    Failure::conflict(call.resource(), call.name(), &why)
}

/// A body may omit its name, but must not contain another one.
pub(super) fn check_name(call: &Call<'_>, object: &Value) -> Result<(), Failure> {
    match object::name(object) {
        "" => Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name()
        ))),
        name if name == call.name() => Ok(()),
        name => Err(Failure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        ))),
    }
}

/// Replaces `old` by `new`. A write without a change keeps the resource version. One that removes
/// the last finalizer of a terminating object removes the object.
pub(super) fn update(
    call: &Call<'_>,
    state: &mut State,
    old: &Arc<Value>,
    mut new: Value,
    dry_run: bool,
) -> Result<Arc<Value>, Failure> {
    let resource = call.resource();
    check_resource_version(call, old, &mut new)?;
    rules::prepare_update(resource, call.target.subresource, old, &mut new);
    keep_system_fields(old, &mut new);
    keep_managers(call, old, &mut new);
    let causes = rules::update_violations(resource, old, &new);
    if !causes.is_empty() {
        return Err(Failure::invalid(resource, call.name(), &causes));
    }
    if is_released(&new) {
        if !dry_run {
            state.store.remove(resource, &call.target.key());
        }
        return Ok(Arc::new(new));
    }
    if new == **old {
        return Ok(old.clone());
    }
    if dry_run {
        return Ok(Arc::new(new));
    }
    Ok(state.store.put(resource, &call.target.key(), new))
}

fn check_resource_version(call: &Call<'_>, old: &Value, new: &mut Value) -> Result<(), Failure> {
    let current = object::resource_version(old);
    match object::resource_version(new) {
        "" | "0" if call.resource().put_unconditional => {
            object::set_metadata(new, "resourceVersion", Some(current.into()));
            Ok(())
        }
        "" | "0" => Err(Failure::version_required(call.resource(), call.name())),
        required if required == current => Ok(()),
        required if required.parse::<u64>().is_err() => Err(Failure::unparsable_number(required)),
        _ => Err(Failure::outdated(call.resource(), call.name())),
    }
}

/// Restores the metadata that clients can't change.
fn keep_system_fields(old: &Value, new: &mut Value) {
    let old_field = |field: &str| old["metadata"].get(field).cloned();
    if object::uid(new).is_empty() {
        object::set_metadata(new, "uid", old_field("uid"));
    }
    object::set_metadata(new, "creationTimestamp", old_field("creationTimestamp"));
    object::set_metadata(new, "generation", old_field("generation"));
    if object::is_terminating(old) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            object::set_metadata(new, field, old_field(field));
        }
    }
}

/// Keeps `managedFields`, unless an apply already set them.
fn keep_managers(call: &Call<'_>, old: &Value, new: &mut Value) {
    if object::array(new, "/metadata/managedFields").is_empty() {
        let manager = Manager {
            name: call.query.get("fieldManager").unwrap_or("unknown"),
            time: rules::time::seconds(call.server.now()),
        };
        if let Some(entries) = managed::after_update(old, new, &manager) {
            object::set_metadata(new, "managedFields", Some(entries.into()));
        }
    }
}

/// Whether a terminating object can be removed.
fn is_released(object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds");
    object::is_terminating(object)
        && object::array(object, "/metadata/finalizers").is_empty()
        && object::array(object, "/spec/finalizers").is_empty()
        && grace.and_then(Value::as_u64).unwrap_or(0) == 0
}
