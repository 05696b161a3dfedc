//! What is known of pods and nodes that are not well, judged purely, and the way to their cluster.
//!
//! Deleting a pod by force, or a node that is silent, tells Kubernetes that its processes will never
//! run again, and nothing checks that it is true. This library gathers the evidence, says which
//! guarantees a deletion gives up, and knows a node that was fenced from one that only seems dead.
//!
//! [`cluster`] is the only code that talks to the API server. Everything else takes what was read and
//! the present as arguments.

#![warn(missing_docs)]

pub mod checks;
pub mod cluster;
pub mod consent;
pub mod constants;
pub mod facts;
pub mod fencing;
pub mod known;
pub mod node_health;
pub mod outcome;
pub mod report;
pub mod stranded;
pub mod taint;
pub mod why;
pub mod wire;
pub mod words;

pub use known::{Known, Why};
