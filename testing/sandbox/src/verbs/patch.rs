//! PATCH: JSON merge patches, JSON patches, and strategic merge patches as kubectl sends them.

use serde_json::Value;

use super::call::{Call, Outcome};
use super::create::insert;
use super::update::{check_name, uid_conflict, update};
use crate::failure::Failure;
use crate::rules::time::seconds;
use crate::{managed, object, strategic, versions};

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Merge,
    Json,
    Strategic,
    /// Server-side apply, only for Nodes.
    Apply,
}

impl PatchType {
    pub(crate) fn from_content_type(content_type: &str) -> Result<Self, Failure> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/json-patch+json" => Ok(Self::Json),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(Failure::unsupported_patch()),
        }
    }

    fn apply(self, object: &mut Value, patch: &Value) -> Result<(), Failure> {
        match self {
            Self::Merge if !patch.is_object() => Err(Failure::bad_request(
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            )),
            Self::Merge => {
                json_patch::merge(object, patch);
                Ok(())
            }
            Self::Json => {
                let operations: json_patch::Patch =
                    serde_json::from_value(patch.clone()).map_err(|error| {
                        Failure::bad_request(format!("error decoding patch: {error}"))
                    })?;
                json_patch::patch(object, &operations).map_err(|_| Failure::failed_operation())
            }
            Self::Strategic => strategic::merge(object, patch).map_err(Failure::bad_request),
            Self::Apply => Err(Failure::unsupported_patch()),
        }
    }
}

pub(crate) fn patch(
    call: &Call<'_>,
    patch_type: PatchType,
    patch: &Value,
) -> Result<Outcome, Failure> {
    let resource = call.resource();
    let dry_run = call.query.dry_run("PatchOptions")?;
    if patch_type == PatchType::Apply && &*resource.collection == "nodes" {
        return apply(call, patch, dry_run);
    }
    call.server.change(|state| {
        let old = state
            .store
            .get(resource, &call.target.key())
            .cloned()
            .ok_or_else(|| call.not_found())?;
        let mut new = Value::clone(&call.served(&old));
        patch_type.apply(&mut new, patch)?;
        let patched = new.clone();
        call.read_patched(&mut new, &patched)?;
        if object::namespace(&new) != call.target.namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        check_name(call, &new)?;
        let new = versions::stored(resource, new);
        let stored = update(call, state, &old, new, dry_run)?;
        Ok(Outcome::Object(200, call.served(&stored)))
    })
}

/// Server-side apply. Creates the object if it does not exist, unless the body names a uid.
fn apply(call: &Call<'_>, applied: &Value, dry_run: bool) -> Result<Outcome, Failure> {
    let (resource, force) = (call.resource(), call.query.flag("force"));
    let manager = managed::Manager {
        name: call.query.get("fieldManager").unwrap_or("unknown"),
        time: seconds(call.server.now()),
    };
    call.server.change(|state| {
        let wanted = object::uid(applied).to_owned();
        let Some(old) = state.store.get(resource, &call.target.key()).cloned() else {
            if !wanted.is_empty() {
                let why = "uid mismatch: the provided object specified uid {wanted}, and no existing object was found";
                let why = why.replace("{wanted}", &wanted);
                return Err(Failure::conflict(resource, call.name(), &why));
            }
            let mut body = applied.clone();
            call.read(&mut body)?;
            let (_, entries) = managed::apply(&Value::Null, &body, &manager, force, resource)?;
            object::set_metadata(&mut body, "managedFields", Some(entries.into()));
            let stored = insert(call, state, body, dry_run)?;
            return Ok(Outcome::Object(201, call.served(&stored.into())));
        };
        if !wanted.is_empty() && wanted != object::uid(&old) {
            return Err(uid_conflict(call, &wanted, object::uid(&old)));
        }
        let (mut new, entries) = managed::apply(&old, applied, &manager, force, resource)?;
        let patched = new.clone();
        call.read_patched(&mut new, &patched)?;
        check_name(call, &new)?;
        object::set_metadata(&mut new, "managedFields", Some(entries.into()));
        let stored = update(call, state, &old, new, dry_run)?;
        Ok(Outcome::Object(200, call.served(&stored)))
    })
}
