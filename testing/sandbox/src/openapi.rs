//! The part of OpenAPI that makes kubectl leave validation to the server: each type supports
//! `fieldValidation`.

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::resource::{Catalog, Resource};

/// Answers `/openapi/v3` and the documents that it lists.
pub(crate) fn answer(catalog: &Catalog, path: &[String]) -> Result<Value, Failure> {
    if path.is_empty() {
        let index: Map<String, Value> = catalog
            .iter()
            .map(|resource| {
                let root = root(resource);
                let url = json!({"serverRelativeURL": format!("/openapi/v3/{root}")});
                (root, url)
            })
            .collect();
        return Ok(json!({ "paths": index }));
    }
    let wanted = path.join("/");
    let paths: Map<String, Value> = catalog
        .iter()
        .filter(|resource| root(resource) == wanted)
        .map(|resource| (object_path(resource), operations(resource)))
        .collect();
    if paths.is_empty() {
        return Err(Failure::unknown_path());
    }
    Ok(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
    }))
}

fn root(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

fn object_path(resource: &Resource) -> String {
    let namespace = if resource.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    format!(
        "/{}/{namespace}{}/{{name}}",
        root(resource),
        resource.plural
    )
}

fn operations(resource: &Resource) -> Value {
    let kind = json!({
        "group": resource.group,
        "version": resource.version,
        "kind": resource.kind,
    });
    let parameter = |name: &str| {
        json!({
            "name": name,
            "in": "query",
            "schema": {"type": "string", "uniqueItems": true},
        })
    };
    json!({
        "patch": {
            "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
            "responses": {},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
        },
    })
}
