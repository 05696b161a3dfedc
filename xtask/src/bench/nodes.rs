//! Nodes to measure on.

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

/// Makes `count` nodes: `PREFIX-0` and so on.
pub(super) fn make_nodes(plane: &ControlPlane, prefix: &str, count: usize) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..count)
        .map(|number| NodeSpec::ready(&format!("{prefix}-{number}")))
        .collect();
    plane.create_nodes(&nodes)
}
