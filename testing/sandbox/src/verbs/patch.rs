//! PATCH: JSON merge patches, JSON patches, and strategic merge patches as kubectl sends them.

use serde_json::Value;

use super::update::{check_name, update};
use super::{Call, Outcome};
use crate::failure::Failure;
use crate::{object, strategic, versions};

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Merge,
    Json,
    Strategic,
}

impl PatchType {
    pub(crate) fn from_content_type(content_type: &str) -> Result<Self, Failure> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/json-patch+json" => Ok(Self::Json),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
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
