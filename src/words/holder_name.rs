//! Who has a lock, in words that are safe to print.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use crate::text::escape;
use crate::words::holder::{self, HolderSource, HoldingCommand};

/// Where the caller's identity comes from, and how to choose another. `by_flag`: if it was set, that was by the flag.
pub(crate) fn source(source: HolderSource, by_flag: bool) -> &'static str {
    match source {
        HolderSource::Set if by_flag => "--holder",
        HolderSource::Set => "the variable KUBECTL_MAINT_HOLDER",
        HolderSource::ApiUser => "the default: your API user; change it with --holder",
        HolderSource::SharedApiUser => {
            "the default: your login and host, because others may share the API user"
        }
        HolderSource::UnknownApiUser => {
            "the default: your login and host, because your credentials show no API user that can be a holder"
        }
    }
}

pub(crate) const WITH_HOLDER: &str = "holder of the `with` that runs this command";

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
