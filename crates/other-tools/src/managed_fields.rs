//! Who owns a field, as the API server records it in `managedFields`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

/// The names of the fields from the root of the object to this one.
pub(crate) type Path<'a> = &'a [&'a str];

/// The entries of `metadata` that own the field at `path`.
pub(crate) fn owners<'a>(
    metadata: &'a ObjectMeta,
    path: Path<'a>,
) -> impl Iterator<Item = &'a ManagedFieldsEntry> {
    let entries = metadata.managed_fields.iter().flatten();
    entries.filter(move |entry| owns(entry, path))
}

fn owns(entry: &ManagedFieldsEntry, path: Path<'_>) -> bool {
    let Some(fields) = &entry.fields_v1 else {
        return false;
    };
    let found = path.iter().try_fold(&fields.0, |fields, name| {
        fields.get(format!("f:{name}").as_str())
    });
    found.is_some()
}

/// Whether `entry` is that of server-side applies by `manager`.
pub(crate) fn is_apply_of(entry: &ManagedFieldsEntry, manager: &str) -> bool {
    entry.operation.as_deref() == Some("Apply") && entry.manager.as_deref() == Some(manager)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_owns_the_fields_that_it_lists() {
        let metadata: ObjectMeta = serde_json::from_value(serde_json::json!({"managedFields": [
            {"manager": "kubelet", "operation": "Update", "subresource": "status",
                "fieldsV1": {"f:status": {}}},
            {"manager": "kubectl-cordon", "operation": "Update",
                "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
            {"manager": "ours", "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:annotations": {"f:a.example/b": {}}}}},
        ]}))
        .expect("metadata");
        let names = |path: Path<'_>| -> Vec<String> {
            let owners = owners(&metadata, path);
            owners.filter_map(|entry| entry.manager.clone()).collect()
        };
        assert_eq!(names(&["spec", "unschedulable"]), ["kubectl-cordon"]);
        assert_eq!(names(&["metadata", "annotations", "a.example/b"]), ["ours"]);
        assert!(names(&["metadata", "annotations", "a.example/c"]).is_empty());
        let entries = metadata.managed_fields.as_deref().unwrap_or_default();
        let ours = entries.iter().map(|entry| is_apply_of(entry, "ours"));
        assert_eq!(ours.collect::<Vec<_>>(), [false, false, true]);
    }
}
