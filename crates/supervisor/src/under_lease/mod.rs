//! Runs a command for as long as leases are held.
//!
//! The command may run until the earliest deadline of the leases, which every renewal extends. It is ended if
//! a lease is lost. It is stopped while a lease must be checked. This is the case if the clocks show that
//! time may have passed unnoticed, for example in a virtual machine that was paused.
//!
//! `maintenance-lease` keeps the leases. This prints nothing: the caller turns the [`Progress`] into messages.

mod outcome;
mod progress;
mod run;

pub use outcome::CommandOutcome;
pub use progress::{Progress, Stage};
pub use run::{run, stop};
