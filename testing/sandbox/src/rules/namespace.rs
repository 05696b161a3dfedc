//! Namespaces: a finalizer keeps them until their content is deleted.

use serde_json::{Value, json};

use super::fields::keep;
use crate::object;
use crate::route::Subresource;

/// The finalizer that the namespace controller removes last.
pub(crate) const FINALIZER: &str = "kubernetes";

pub(super) fn prepare_create(object: &mut Value) {
    let name = object::name(object).to_owned();
    if let Some(metadata) = object.get_mut("metadata") {
        object::map_mut(metadata, "labels")
            .insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
    object["spec"] = json!({ "finalizers": [FINALIZER] });
    object["status"] = json!({"phase": "Active"});
}

/// `spec.finalizers` can be written only through `finalize`.
pub(super) fn prepare_update(subresource: Subresource, old: &Value, new: &mut Value) {
    if subresource != Subresource::Finalize {
        keep(old, new, "spec");
    }
    if subresource != Subresource::Status {
        keep(old, new, "status");
    }
}
