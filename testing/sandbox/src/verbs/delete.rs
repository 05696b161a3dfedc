//! DELETE, of one object and of a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{Call, List, Outcome};
use super::list::{ListOptions, list};
use crate::collector::{FOREGROUND, ORPHAN};
use crate::failure::Failure;
use crate::query::{DeleteOptions, Propagation};
use crate::server::State;
use crate::{object, rules};

/// Namespaces that can't be deleted, because the server would create them again at once.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(crate) fn delete(call: &Call<'_>, body: Option<&Value>) -> Result<Outcome, Failure> {
    let options = DeleteOptions::read(body, call.query)?;
    call.server.change(|state| {
        let removal = remove(call, state, &call.target.key(), &options)?;
        Ok(match removal {
            Removal::Pending(object) => Outcome::Object(200, call.served(&object)),
            Removal::Done(object) if rules::deletion_answers_object(call.resource()) => {
                Outcome::Object(200, call.served(&object))
            }
            Removal::Done(object) => Outcome::Done(success(call, &object)),
        })
    })
}

/// DELETE of everything that the query selects. Answers with the deleted objects.
pub(crate) fn delete_collection(call: &Call<'_>, body: Option<&Value>) -> Result<Outcome, Failure> {
    let options = DeleteOptions::read(body, call.query)?;
    let selected = ListOptions::read(call.resource(), call.query)?;
    let Outcome::List(found) = list(call, &selected)? else {
        return Err(Failure::internal("a list that is none"));
    };
    call.server.change(|state| {
        let mut items = Vec::new();
        for object in &found.items {
            let key = crate::route::key(object::namespace(object), object::name(object));
            let (Removal::Pending(last) | Removal::Done(last)) =
                remove(call, state, &key, &options)?;
            items.push(call.served(&last));
        }
        Ok(Outcome::List(List {
            revision: state.store.revision(),
            items,
            next: String::new(),
            remaining: None,
        }))
    })
}

/// The progress of a deletion.
enum Removal {
    /// The object is removed. This was its last state.
    Done(Arc<Value>),
    /// The deletion must wait.
    Pending(Arc<Value>),
}

fn remove(
    call: &Call<'_>,
    state: &mut State,
    key: &str,
    options: &DeleteOptions,
) -> Result<Removal, Failure> {
    let resource = call.resource();
    let old = state
        .store
        .get(resource, key)
        .cloned()
        .ok_or_else(|| call.not_found())?;
    check_preconditions(call, &old, options)?;
    if &*resource.collection == "namespaces" {
        return remove_namespace(call, state, &old, options);
    }
    let mut new = Value::clone(&old);
    add_propagation(&mut new, options.propagation);
    let grace = rules::grace_period(resource, &old, options.grace_period);
    let held = !object::array(&new, "/metadata/finalizers").is_empty();
    if grace.is_some() || held {
        shorten_life(&mut new, call, grace.unwrap_or(0));
    }
    let ends = !held && grace_left(&new).unwrap_or(0) == 0;
    let last = if new == *old || options.dry_run {
        Arc::new(new)
    } else {
        state.store.put(resource, key, new)
    };
    if !ends {
        return Ok(Removal::Pending(last));
    }
    if !options.dry_run {
        state.store.remove(resource, key);
    }
    Ok(Removal::Done(last))
}

/// Begins the deletion, or shortens its grace period, which can't get longer.
fn shorten_life(object: &mut Value, call: &Call<'_>, grace: u64) {
    if grace_left(object).is_none_or(|left| grace < left) {
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_u64);
        if let Some(generation) = generation.filter(|_| !object::is_terminating(object)) {
            object::set_metadata(object, "generation", Some((generation + 1).into()));
        }
        object::mark_terminating(object, call.server.now(), grace);
    }
}

fn grace_left(object: &Value) -> Option<u64> {
    object
        .pointer("/metadata/deletionGracePeriodSeconds")
        .and_then(Value::as_u64)
}

/// A namespace is only marked for deletion, because its content is deleted first.
fn remove_namespace(
    call: &Call<'_>,
    state: &mut State,
    old: &Arc<Value>,
    options: &DeleteOptions,
) -> Result<Removal, Failure> {
    let (resource, name) = (call.resource(), object::name(old));
    if IMMORTAL.contains(&name) {
        return Err(Failure::forbidden(
            resource,
            name,
            "this namespace may not be deleted",
        ));
    }
    if object::is_terminating(old) {
        return Err(Failure::conflict(
            resource,
            name,
            "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be purged by the system.",
        ));
    }
    let mut new = Value::clone(old);
    let since = rules::time::seconds(call.server.now());
    object::set_metadata(&mut new, "deletionTimestamp", Some(since.into()));
    new["status"]["phase"] = json!("Terminating");
    if options.dry_run {
        return Ok(Removal::Pending(new.into()));
    }
    Ok(Removal::Pending(state.store.put(resource, name, new)))
}

fn check_preconditions(
    call: &Call<'_>,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    let name = object::name(object);
    let (uid, version) = (object::uid(object), object::resource_version(object));
    if let Some(required) = options.uid.as_deref().filter(|required| *required != uid) {
        let why = format!(
            "the UID in the precondition ({required}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(Failure::precondition(call.resource(), name, &why));
    }
    let wanted = options.resource_version.as_deref();
    if let Some(required) = wanted.filter(|required| *required != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({required}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Failure::precondition(call.resource(), name, &why));
    }
    Ok(())
}

/// A finalizer tells the collector to delete the dependents first, or to orphan them.
fn add_propagation(object: &mut Value, propagation: Propagation) {
    let finalizer = match propagation {
        Propagation::Background => return,
        Propagation::Foreground => FOREGROUND,
        Propagation::Orphan => ORPHAN,
    };
    if object::texts(object, "/metadata/finalizers").contains(&finalizer) {
        return;
    }
    let metadata = object::metadata_mut(object);
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut() {
        list.push(finalizer.into());
    }
}

fn success(call: &Call<'_>, object: &Value) -> Value {
    let mut details = json!({
        "name": object::name(object),
        "kind": call.resource().plural,
        "uid": object::uid(object),
    });
    if !call.resource().group.is_empty() {
        details["group"] = call.resource().group.clone().into();
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
