//! The record on a Node of the Machine on which a lock set opt-outs. Without it, nobody would know where to remove them.

use k8s_openapi::api::core::v1::Node;
use serde::{Deserialize, Serialize};

/// The annotation with the record.
pub(crate) const RECORD: &str = "kubectl-maint.dev/held-machine";

/// A Machine on which a lock set opt-outs, or is about to. It may be in another cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The record on `node`, if it has a readable one.
    #[must_use]
    pub fn on(node: &Node) -> Option<Self> {
        let annotations = node.metadata.annotations.as_ref()?;
        serde_json::from_str(annotations.get(RECORD)?).ok()
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
            ("m-1".to_owned(), None),
            ("{}".to_owned(), None),
        ] {
            node.metadata.annotations = Some([(RECORD.to_owned(), value)].into());
            assert_eq!(MachineRecord::on(&node), expected);
        }
    }
}
