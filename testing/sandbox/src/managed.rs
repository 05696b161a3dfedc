//! `managedFields`, as far as server-side apply of labels, annotations and plain fields of `spec` needs it.
//!
//! An object has none until its first apply. The entry `before-first-apply` then owns the existing fields, as on the
//! real server. If other requests change fields later, they become the owners of those fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::object;
use crate::resource::Resource;

/// The values of the tracked fields, by path.
type Fields = BTreeMap<Vec<String>, Value>;

/// The field manager of a change, and the time.
pub(crate) struct Manager<'a> {
    pub(crate) name: &'a str,
    pub(crate) time: String,
}

impl Manager<'_> {
    fn entry(&self, operation: &str, paths: impl IntoIterator<Item = Vec<String>>) -> Value {
        let mut fields = json!({});
        for path in paths {
            let mut at = &mut fields;
            for name in path {
                at = &mut at[format!("f:{name}")];
            }
            *at = json!({});
        }
        json!({
            "manager": self.name,
            "operation": operation,
            "apiVersion": "v1",
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        })
    }

    fn is_of(&self, entry: &Value, operation: &str) -> bool {
        entry["manager"] == self.name && entry["operation"] == operation
    }
}

/// Applies `applied` to `live`. Returns the new object, with its `managedFields`.
///
/// # Errors
/// If another manager owns a field with another value, and `force` is not set.
pub(crate) fn apply(
    live: &Value,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
    resource: &Resource,
) -> Result<(Value, Vec<Value>), Failure> {
    let (before, wanted) = (fields(live), fields(applied));
    let mut entries = object::array(live, "/metadata/managedFields").to_vec();
    if entries.is_empty() && !before.is_empty() {
        let first = Manager {
            name: "before-first-apply",
            time: manager.time.clone(),
        };
        entries.push(first.entry("Update", before.keys().cloned()));
    }
    let (own, mut others): (Vec<Value>, Vec<Value>) = entries
        .into_iter()
        .partition(|entry| manager.is_of(entry, "Apply"));
    let mut conflicts = Vec::new();
    for (path, value) in &wanted {
        let is_other = before.get(path).is_some_and(|found| found != value);
        if is_other && force {
            others
                .iter_mut()
                .for_each(|entry| disown(&mut entry["fieldsV1"], path));
        } else if is_other {
            let owners = others.iter().filter(|entry| owns(entry, path));
            conflicts.extend(owners.map(|owner| conflict(owner, path)));
        }
    }
    if !conflicts.is_empty() {
        return Err(Failure::apply_conflict(
            resource,
            object::name(live),
            conflicts,
        ));
    }
    let mut new = live.clone();
    for path in before.keys().filter(|path| !wanted.contains_key(*path)) {
        let is_own = own.iter().any(|entry| owns(entry, path));
        if is_own && !others.iter().any(|entry| owns(entry, path)) {
            remove(&mut new, path);
        }
    }
    json_patch::merge(&mut new, applied);
    let mut entries = others;
    if !wanted.is_empty() {
        let mut entry = manager.entry("Apply", wanted.keys().cloned());
        if let Some(old) = own
            .first()
            .filter(|old| old["fieldsV1"] == entry["fieldsV1"])
            && fields(&new) == before
        {
            entry = old.clone();
        }
        entries.push(entry);
    }
    Ok((new, entries))
}

/// The `managedFields` after another request changed `old` into `new`. `None` if they are not tracked.
pub(crate) fn after_update(old: &Value, new: &Value, manager: &Manager<'_>) -> Option<Vec<Value>> {
    let mut entries = object::array(old, "/metadata/managedFields").to_vec();
    if entries.is_empty() {
        return None;
    }
    let (before, after) = (fields(old), fields(new));
    let changed = |path: &&Vec<String>| before.get(*path) != after.get(*path);
    let changed: Vec<Vec<String>> = before
        .keys()
        .chain(after.keys())
        .filter(changed)
        .cloned()
        .collect();
    for entry in &mut entries {
        for path in &changed {
            disown(&mut entry["fieldsV1"], path);
        }
    }
    let mut own: Vec<Vec<String>> = Vec::new();
    own.extend(changed.into_iter().filter(|path| after.contains_key(path)));
    if !own.is_empty() {
        let earlier = entries
            .iter()
            .position(|entry| manager.is_of(entry, "Update"));
        if let Some(earlier) = earlier {
            let earlier = entries.remove(earlier);
            own.extend(after.keys().filter(|path| owns(&earlier, path)).cloned());
        }
        entries.push(manager.entry("Update", own));
    }
    entries.retain(|entry| entry["fieldsV1"] != json!({}));
    Some(entries)
}

fn fields(object: &Value) -> Fields {
    let mut fields = Fields::new();
    let parts = [
        &["metadata", "labels"][..],
        &["metadata", "annotations"],
        &["spec"],
    ];
    for part in parts {
        let found = part.iter().try_fold(object, |at, name| at.get(name));
        let map = found.and_then(Value::as_object);
        for (name, value) in map.into_iter().flatten() {
            let mut path: Vec<String> = part.iter().map(|&name| name.to_owned()).collect();
            path.push(name.clone());
            fields.insert(path, value.clone());
        }
    }
    fields
}

fn owns(entry: &Value, path: &[String]) -> bool {
    let found = path.iter().try_fold(&entry["fieldsV1"], |at, name| {
        at.get(format!("f:{name}").as_str())
    });
    found.is_some()
}

fn disown(fields: &mut Value, path: &[String]) {
    let Some((name, rest)) = path.split_first() else {
        return;
    };
    let name = format!("f:{name}");
    let Some(map) = fields.as_object_mut() else {
        return;
    };
    if let Some(inner) = map.get_mut(&name) {
        disown(inner, rest);
        if rest.is_empty() || inner.as_object().is_some_and(Map::is_empty) {
            map.remove(&name);
        }
    }
}

fn remove(object: &mut Value, path: &[String]) {
    if let Some((last, parents)) = path.split_last()
        && let Some(parent) = parents
            .iter()
            .try_fold(object, |at, name| at.get_mut(name))
            .and_then(Value::as_object_mut)
    {
        parent.remove(last);
    }
}

fn conflict(owner: &Value, path: &[String]) -> Value {
    let manager = owner["manager"].as_str().unwrap_or_default();
    let field = format!(".{}", path.join("."));
    json!({
        "reason": "FieldManagerConflict",
        "message": format!("conflict with {manager:?}"),
        "field": field,
    })
}
