//! A node and its lock as a table shows them.

use maintenance_lease::protocol::Instant;
use maintenance_lease::{NodeLease, NodeLookup};
use node_keys::{Finding, NodeKeys};
use pod_safety::node_health::Health;

use crate::words::fencing_annotations::FencingAnnotations;

/// A node and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) node: &'a str,
    /// `None`: there is no Lease.
    pub(crate) lease: Option<&'a NodeLease>,
    pub(crate) row: &'a NodeLookup,
    pub(crate) heartbeat: Heartbeat,
    /// `None`: nothing is known beyond its row.
    pub(crate) health: Option<&'a Health>,
    /// The fencing annotations on the Node; `None`: the whole object was not read.
    pub(crate) annotations: Option<&'a FencingAnnotations>,
    /// What other tools do to the node; `None`: the whole object was not read.
    pub(crate) findings: Option<&'a [Finding]>,
    /// What locks set on the Node; `None`: the whole object was not read.
    pub(crate) keys: Option<&'a NodeKeys>,
}

/// When a node's kubelet last renewed its heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    At(Instant),
    /// The node has none.
    Missing,
    /// No permission to read it, or not requested.
    Unknown,
}
