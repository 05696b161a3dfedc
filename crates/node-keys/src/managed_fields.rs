//! Who owns a field, as the API server records it in `managedFields`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

/// The field manager of the keys.
pub const FIELD_MANAGER: &str = "kubectl-maint-node-keys";

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

/// Whether only our applies own the field at `path`.
pub(crate) fn is_only_ours(metadata: &ObjectMeta, path: Path<'_>) -> bool {
    let mut owners = owners(metadata, path).peekable();
    owners.peek().is_some() && owners.all(is_ours)
}

/// Whether `entry` is that of our applies.
pub(crate) fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Apply") && entry.manager.as_deref() == Some(FIELD_MANAGER)
}

/// What our applies own, as the server records it.
pub(crate) fn own_fields(metadata: &ObjectMeta) -> Option<&Value> {
    let mut entries = metadata.managed_fields.iter().flatten();
    let entry = entries.find(|entry| is_ours(entry))?;
    Some(&entry.fields_v1.as_ref()?.0)
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
            {"manager": FIELD_MANAGER, "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:annotations": {"f:a.example/b": {}}}}},
        ]}))
        .expect("metadata");
        let names = |path: Path<'_>| -> Vec<String> {
            let owners = owners(&metadata, path);
            owners.filter_map(|entry| entry.manager.clone()).collect()
        };
        assert_eq!(names(&["spec", "unschedulable"]), ["kubectl-cordon"]);
        let ours = ["metadata", "annotations", "a.example/b"];
        assert_eq!(names(&ours), [FIELD_MANAGER]);
        assert!(is_only_ours(&metadata, &ours));
        for other in [
            &["spec", "unschedulable"][..],
            &["metadata", "annotations", "c"],
        ] {
            assert!(!is_only_ours(&metadata, other));
        }
    }
}
