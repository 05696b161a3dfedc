//! The two servers, the wires to them, and the words that the cases are written in.

mod client_go;
mod clocks;
mod cluster;
mod runs;
mod verdicts;
mod wire;

use std::time::Duration;

pub(crate) use client_go::ClientGo;
pub(crate) use clocks::{PausedMachine, micros, noon, noon_and};
pub(crate) use cluster::{Cluster, NAMESPACE_PATH, NODES};
pub(crate) use runs::{
    alone_in_the_sandbox, alone_on_kubernetes, in_the_sandbox, on_both_servers, on_kubernetes,
};
pub(crate) use verdicts::{annotation, changed, refusal};
pub(crate) use wire::{Fate, Letter, Passing, Wire};

/// A time limit that a test waits out: longer than any answer of a busy server takes, so that it ends a pause between
/// two requests and not a request.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(6);
