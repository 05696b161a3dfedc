//! Discovery: the groups, versions and types that kubectl reads first.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::resource::{Catalog, Resource};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Answers `/api`, `/apis` and the paths below them.
pub(crate) fn answer(catalog: &Catalog, path: &[String]) -> Result<Value, Failure> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["api"] => Ok(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        ["apis"] => Ok(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups(catalog).iter().map(|(name, versions)| group(name, versions)).collect::<Vec<_>>(),
        })),
        ["apis", name] => groups(catalog)
            .iter()
            .find(|(group, _)| group == name)
            .map(|(name, versions)| {
                let mut found = group(name, versions);
                found["kind"] = "APIGroup".into();
                found["apiVersion"] = "v1".into();
                found
            })
            .ok_or_else(Failure::unknown_path),
        ["api", version] => resources(catalog, "", version),
        ["apis", group, version] => resources(catalog, group, version),
        _ => Err(Failure::unknown_path()),
    }
}

/// The named groups with their versions, in the order of the catalog.
pub(crate) fn groups(catalog: &Catalog) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let served = catalog
        .iter()
        .map(|resource| (resource.group.as_str(), resource.version.as_str()))
        .chain([("authorization.k8s.io", "v1")])
        .filter(|(group, _)| !group.is_empty());
    for (group, version) in served {
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, versions)) if versions.iter().any(|known| known == version) => {}
            Some((_, versions)) => versions.push(version.to_owned()),
            None => groups.push((group.to_owned(), vec![version.to_owned()])),
        }
    }
    groups
}

fn group(name: &str, versions: &[String]) -> Value {
    let version =
        |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

fn resources(catalog: &Catalog, group: &str, version: &str) -> Result<Value, Failure> {
    let mut list: Vec<Value> = Vec::new();
    for resource in catalog.iter() {
        if resource.group != group || resource.version != version {
            continue;
        }
        list.push(entry(resource));
        if resource.has_status {
            list.push(subresource(resource, "status"));
        }
        if resource.plural == "namespaces" {
            list.push(subresource(resource, "finalize"));
        }
    }
    if (group, version) == ("authorization.k8s.io", "v1") {
        list.push(json!({
            "name": "selfsubjectaccessreviews",
            "singularName": "selfsubjectaccessreview",
            "namespaced": false,
            "kind": "SelfSubjectAccessReview",
            "verbs": ["create"],
        }));
    }
    if list.is_empty() {
        return Err(Failure::unknown_path());
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": list,
    }))
}

fn entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": VERBS,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    entry
}

fn subresource(resource: &Resource, name: &str) -> Value {
    json!({
        "name": format!("{}/{name}", resource.plural),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["get", "patch", "update"],
    })
}
