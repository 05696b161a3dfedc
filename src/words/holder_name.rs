//! Who has a lock, in words that are safe to print.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use crate::text::escape;
use crate::words::holder::{self, HoldingCommand};

/// The holder of a Lease; for a hold, the person behind it.
pub(crate) fn person(lease: &NodeLease) -> String {
    lease.holder().map_or_else(|| "nobody".to_owned(), of_node)
}

/// The same from the holder name in a node's Lease.
pub(crate) fn of_node(holder: &str) -> String {
    named(identity::person(holder))
}

/// The same for a narrow table: of a `with`, without its process.
pub(crate) fn brief(holder: &str) -> String {
    match HoldingCommand::of(holder) {
        Some((running, whose)) => format!("{}/{}", of_node(whose), running.name()),
        None => of_node(holder),
    }
}

/// The person behind a holder name, also if it is of a running command.
pub(crate) fn behind(holder: &str) -> String {
    named(holder::person(holder))
}

/// A holder unchanged, whatever other tools wrote.
pub(crate) fn named(holder: &str) -> String {
    identity::visible(&escape(holder)).into_owned()
}
