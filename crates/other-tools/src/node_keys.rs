//! What a lock writes on its Node, and whether it is there. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

use crate::managed_fields::{is_apply_of, owners};

/// The field manager of the keys.
pub const FIELD_MANAGER: &str = "kubectl-maint-node-keys";

/// The annotation with the lock id that the keys belong to.
pub(crate) const LOCK_ID: &str = "kubectl-maint.dev/held-lock-id";

/// How the annotations that explain the held label begin.
pub(crate) const NOTES: &str = "kubectl-maint.dev/held-";

/// The label of a Node that its lock protects. The node policy refuses some writes to Nodes that have it.
pub const HELD: &str = "kubectl-maint.dev/held";

/// What else the hold set and nobody had set before: keys, and [`CORDON`]. A copy of the Node does not show it otherwise.
pub(crate) const SET: &str = "kubectl-maint.dev/held-set";

/// How [`SET`] calls the cordon.
pub(crate) const CORDON: &str = "cordon";

/// What a lock writes on its Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeKeys {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations. The lock id is added to them.
    pub annotations: BTreeMap<String, String>,
    /// Cordon the Node.
    pub cordon: bool,
}

impl NodeKeys {
    /// These keys and those of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.labels.extend(other.labels);
        self.annotations.extend(other.annotations);
        self.cordon |= other.cordon;
        self
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether only locks write this label or annotation.
pub(crate) fn is_held_key(key: &str) -> bool {
    key == HELD || key.starts_with(NOTES)
}

/// Whether only we own the field at `path`.
pub(crate) fn is_only_ours(metadata: &ObjectMeta, path: &[&str]) -> bool {
    let mut owners = owners(metadata, path).peekable();
    owners.peek().is_some() && owners.all(is_own_entry)
}

pub(crate) fn is_own_entry(entry: &ManagedFieldsEntry) -> bool {
    is_apply_of(entry, FIELD_MANAGER)
}

/// What we own of an object, as the server records it.
pub(crate) fn own_entry(metadata: &ObjectMeta) -> Option<&Value> {
    let mut entries = metadata.managed_fields.iter().flatten();
    let entry = entries.find(|entry| is_own_entry(entry))?;
    Some(&entry.fields_v1.as_ref()?.0)
}

pub(crate) fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}
