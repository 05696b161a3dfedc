//! Checks of stuck pods and unhealthy nodes.
//!
//! A forced deletion of a pod, or of an unreachable node, tells Kubernetes that its processes will never run
//! again. Nothing checks that this is true. This library reads the evidence, finds the risks of a deletion,
//! and distinguishes a fenced node from a node that only seems dead.
//!
//! [`cluster`] is the only code that sends requests. Everything else is pure: it takes the objects and the
//! current time as arguments.

#![warn(missing_docs)]

mod bugs;
pub mod checks;
pub mod cluster;
pub mod consent;
pub mod constants;
mod controller;
pub mod facts;
pub mod fencing;
pub mod known;
pub mod lost_deletion;
pub mod node_health;
pub mod outcome;
pub mod owners;
pub mod report;
pub mod stuck;
pub mod taint;
pub mod why;
pub mod wire;
pub mod words;

pub use known::{Known, Why};
