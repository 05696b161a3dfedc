//! Leases that the lease policy can't date.

use std::collections::HashMap;

use maintenance_lease::{AnyLease, NodeLease};

use super::policies::InForce;
use super::unread::unread;
use crate::run::session::Session;
use crate::words::doctor::finding::{Finding, Source};
use crate::words::holder_name::person;

/// The Leases without managedFields, which show the time of a write. Only the lease policy needs them. A repair changes no lock.
pub(super) async fn check(
    session: &Session<'_>,
    leases: &[AnyLease],
    policies: InForce,
    fix: bool,
) -> Finding {
    let untracked = leases.iter().filter(|lease| lease.lacks_managed_fields());
    let nodes: Vec<String> = untracked.clone().map(|it| it.name().to_owned()).collect();
    if nodes.is_empty() || !policies.has_lease_policy {
        return Finding::Leases(leases.len());
    }
    if !fix {
        let is_denied = policies.lease;
        return Finding::Untracked { nodes, is_denied };
    }
    for lease in untracked {
        if let Err(error) = session.locks.restore_managed_fields(lease).await {
            return unread(Source::RepairedLeases, &error.into());
        }
    }
    Finding::Repaired(nodes)
}

/// The holds that are past their expected end.
pub(super) fn overdue(
    session: &Session<'_>,
    leases: &HashMap<String, NodeLease>,
) -> Option<Finding> {
    let now = session.locks.server_time().now();
    let holds = leases.values().filter(|lease| lease.is_hold());
    let overdue = holds.filter_map(|lease| {
        let ago = lease.overdue_for(now)?;
        Some((lease.node().to_owned(), person(lease), ago))
    });
    let mut overdue: Vec<_> = overdue.collect();
    overdue.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
    (!overdue.is_empty()).then_some(Finding::Overdue(overdue))
}
