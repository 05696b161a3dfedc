//! The record on a Node of the Machine on which a lock set opt-outs. Without it, nobody would know where to remove them.

use k8s_openapi::api::core::v1::Node;
use serde::{Deserialize, Serialize};

/// The annotation with the record.
pub(crate) const RECORD: &str = "kubectl-maint.dev/held-machine";

/// A Machine on which a lock set opt-outs, or is about to. It may be in another cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The kubeconfig context that led to its cluster.
    pub context: String,
    /// The URL of the API server that the context led to. Another kubeconfig may have another context of this name.
    pub server: String,
    /// The tool that it belongs to, as `--opt-outs` names it.
    pub tool: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl MachineRecord {
    /// The record on `node`. If somebody has edited it, it may be unreadable.
    #[must_use]
    pub fn on(node: &Node) -> Option<Self> {
        let annotations = node.metadata.annotations.as_ref()?;
        Some(serde_json::from_str(annotations.get(RECORD)?).unwrap_or_default())
    }

    /// Whether both name the same Machine. There may be several ways to its cluster.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        let identity = |of: &Self| [&of.tool, &of.namespace, &of.name, &of.uid].map(Clone::clone);
        identity(self) == identity(other)
    }

    /// Whether it names a Machine.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        !self.name.is_empty()
    }

    /// The value of the annotation.
    pub(crate) fn value(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_was_written() {
        let record = MachineRecord {
            context: "arn:aws:eks:eu-1:1:cluster/mgmt \"a\"".to_owned(),
            server: "https://mgmt.example:6443".to_owned(),
            tool: "cluster-api".to_owned(),
            namespace: "default".to_owned(),
            name: "m-1".to_owned(),
            uid: "u-1".to_owned(),
        };
        let mut node = Node::default();
        assert_eq!(MachineRecord::on(&node), None);
        for (value, expected) in [
            (record.value(), Some(record)),
            ("m-1".to_owned(), Some(MachineRecord::default())),
            ("{}".to_owned(), Some(MachineRecord::default())),
        ] {
            node.metadata.annotations = Some([(RECORD.to_owned(), value)].into());
            let found = MachineRecord::on(&node);
            assert_eq!(found, expected);
            let is_readable = found.is_some_and(|record| record.is_readable());
            assert_eq!(
                is_readable,
                expected.is_some_and(|record| !record.uid.is_empty())
            );
        }
    }
}
