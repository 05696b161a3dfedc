//! Completion of node names, while somebody types.

use clap_complete::engine::ArgValueCompleter;

/// Completes names of nodes from the cluster.
pub(crate) fn nodes() -> ArgValueCompleter {
    ArgValueCompleter::new(|_: &std::ffi::OsStr| Vec::new())
}
