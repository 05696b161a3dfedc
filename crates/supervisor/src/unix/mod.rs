//! macOS and other Unix systems: the command is a process group, and this process keeps its limits.
//!
//! There is no sub-reaper and no `/proc`. So what is ended is the process group of the command, and what descends
//! from it when it is ended, as `ps` shows. A process that has left the group, and whose parent has ended, can't be
//! found. It is noticed if it kept its files open: see [`crate::Event::LeftGroup`].

mod freeze;
mod ignored;
mod job;
mod lifeline;
mod members;
mod ps;
mod running;
mod start;
mod terminal;
#[cfg(test)]
mod tests;

#[cfg(not(target_os = "linux"))]
mod system;

#[cfg(not(target_os = "linux"))]
pub use self::running::Running;
#[cfg(not(target_os = "linux"))]
pub use self::system::{Ignored, Signals, check, entry, kill_tree};
