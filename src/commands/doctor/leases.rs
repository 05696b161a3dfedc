//! Leases that the lease policy can't date.

use maintenance_lease::AnyLease;
use other_tools::LocksByNode;

use super::policies::InForce;
use super::unread::unread;
use crate::output::data::Time;
use crate::output::notice::{Event, Notice};
use crate::run::session::Session;
use crate::run::webhook;
use crate::words::doctor::finding::{Finding, Source};
use crate::words::holder_name::person;
use crate::words::webhook::overdue_hold;

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

/// The holds that are past their expected end, and the messages about them.
pub(super) fn overdue(
    session: &Session<'_>,
    leases: &LocksByNode,
) -> (Option<Finding>, Vec<Notice>) {
    let now = session.locks.server_time().now();
    let holds = leases.values().filter(|lease| lease.is_hold());
    let overdue = holds.filter_map(|lease| Some((lease, lease.overdue_for(now)?)));
    let mut overdue: Vec<_> = overdue.collect();
    overdue.sort_unstable_by(|(a, _), (b, _)| a.node().cmp(b.node()));
    let notices = overdue.iter().map(|(lease, ago)| Notice {
        text: overdue_hold(lease, *ago),
        event: Event::Overdue,
        nodes: vec![lease.node().to_owned()],
        holder: person(lease),
        api_user: lease.api_user().map(ToOwned::to_owned),
        reason: lease.reason().map(ToOwned::to_owned),
        ticket: lease.ticket().map(ToOwned::to_owned),
        expected_until: lease.hold_until().map(Time::from),
        ..webhook::notice(session)
    });
    let notices = notices.collect();
    let found = overdue.into_iter();
    let found = found.map(|(lease, ago)| (lease.node().to_owned(), person(lease), ago));
    let found: Vec<_> = found.collect();
    (
        (!found.is_empty()).then_some(Finding::Overdue(found)),
        notices,
    )
}
