//! What all steps of a forced deletion share.

use maintenance_lease::{Maintenance, NodeLease};
use pod_safety::cluster::Reader;

use super::args::ForceDeleteArgs;
use super::targets::Targets;
use crate::run::session::Session;

/// A run of the verb.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) session: &'a Session<'a>,
    /// The leases of the nodes are acquired as this process, which excludes other processes of the same
    /// person.
    pub(super) process: &'a Maintenance,
    pub(super) reader: &'a Reader,
    pub(super) args: &'a ForceDeleteArgs,
    pub(super) targets: &'a Targets,
}

impl Run<'_> {
    /// The namespace of the pods: that of `-n`, else of the context.
    pub(super) fn namespace(&self) -> &str {
        self.session.connection.client.default_namespace()
    }

    /// Whether the caller holds the lock in `lease`, acquired by this process or before.
    pub(super) fn is_own(&self, lease: &NodeLease) -> bool {
        self.process.is_own(lease) || self.session.locks.is_own(lease)
    }
}
