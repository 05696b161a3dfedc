//! Runs a command for as long as leases are held.
//!
//! The command has until the earliest of their deadlines, which every renewal moves. It is ended
//! where one of them is lost, and stands still while one has to be checked: when the clocks show
//! that time may have passed unnoticed, as in a virtual machine that was paused.
//!
//! `maintenance-lease` keeps the leases, `supervisor` ends the command in time; this is what comes
//! between them. It says nothing itself: whoever runs a command puts the [`News`] into words.
#![warn(missing_docs)]

mod course;
mod news;
mod outcome;

pub use course::{run, stop};
pub use news::{News, Stage};
pub use outcome::Outcome;
