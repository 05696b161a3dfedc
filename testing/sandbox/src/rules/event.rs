//! Events must be in the namespace of the object that they are about, and in `default` if that is a
//! Node.

use serde_json::Value;

use crate::cause::Cause;
use crate::object;

pub(super) fn violations(object: &Value) -> Vec<Cause> {
    let (about, field) = if object.get("regarding").is_some() {
        ("/regarding/namespace", "regarding.namespace")
    } else {
        ("/involvedObject/namespace", "involvedObject.namespace")
    };
    let namespace = object::namespace(object);
    let about = object::text(object, about);
    let fits = if about.is_empty() {
        matches!(namespace, "" | "default" | "kube-system")
    } else {
        about == namespace
    };
    if fits {
        Vec::new()
    } else {
        vec![Cause::invalid(
            field,
            &format!("{about:?}"),
            "does not match event.namespace",
        )]
    }
}
