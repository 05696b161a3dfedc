//! macOS and other Unix systems: the command is a process group, and this process enforces its limits.
//!
//! Without a sub-reaper and `/proc`, only the group and the descendants that `ps` shows can be ended. A
//! process that has left the group and whose parent has ended is not found: see [`crate::Event::LeftGroup`].

mod freeze;
mod ignored;
mod inherited_pipe;
mod job;
mod members;
mod ps;
mod running;
mod start;
#[cfg(test)]
mod tests;
mod tree;

#[cfg(not(target_os = "linux"))]
mod system;

#[cfg(not(target_os = "linux"))]
pub use self::ignored::Ignored;
#[cfg(not(target_os = "linux"))]
pub use self::running::Running;
#[cfg(not(target_os = "linux"))]
pub use self::system::{Signals, check, entry};
#[cfg(not(target_os = "linux"))]
pub use self::tree::kill_tree;
