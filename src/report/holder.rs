//! Who has a lock, in words that are safe to print.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use crate::terminal::escape;

/// Who holds a node: of a hold the person behind it.
pub(crate) fn person(lease: &NodeLease) -> String {
    lease.holder().map_or_else(|| "nobody".to_owned(), of_node)
}

/// The holder of a node's Lease: of a hold the person behind it.
pub(crate) fn of_node(holder: &str) -> String {
    named(identity::person(holder))
}

/// A holder as it stands, whatever other tools wrote.
pub(crate) fn named(holder: &str) -> String {
    identity::visible(&escape(holder)).into_owned()
}
