//! The two servers, the wires to them, and helpers for the cases.

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

/// A time limit that tests wait for. It is longer than the answer of a busy server takes, so it ends in a pause between
/// two requests, and not during a request.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(6);
