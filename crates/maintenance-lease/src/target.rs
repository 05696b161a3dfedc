//! The node that a verb works on.

use crate::cluster::reads::NodeAndLease;
use crate::lease::NodeLease;

/// A node of a verb: its name, or what was read of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name.
    pub node: String,
    /// What was read of it already. It is not read again.
    pub seen: Option<NodeAndLease>,
}

impl From<NodeAndLease> for Target {
    fn from(seen: NodeAndLease) -> Self {
        Self {
            node: seen.node.clone(),
            seen: Some(seen),
        }
    }
}

impl<S: Into<String>> From<S> for Target {
    fn from(node: S) -> Self {
        Self {
            node: node.into(),
            seen: None,
        }
    }
}

impl From<NodeLease> for Target {
    /// Its Lease was read, and the Node was not: for verbs that begin no lock.
    fn from(lease: NodeLease) -> Self {
        let node = lease.node().to_owned();
        NodeAndLease::without_row(&node, Some(lease)).into()
    }
}
