//! Runs a command for as long as leases are held.
//!
//! The command may run until the earliest of their deadlines, which every renewal moves. It is ended if
//! one lease is lost. It is stopped while a lease has to be checked: when the clocks show that time may
//! have passed unnoticed, as in a virtual machine that was paused.
//!
//! `maintenance-lease` keeps the leases, `supervisor` ends the command in time; this crate connects them.
//! It prints nothing: the caller turns the [`Progress`] into messages.
#![warn(missing_docs)]

mod outcome;
mod progress;
mod run;

pub use outcome::CommandOutcome;
pub use progress::{Progress, Stage};
pub use run::{run, stop};
