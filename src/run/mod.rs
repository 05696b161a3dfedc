//! What the commands share.
//!
//! A command opens a [`session`]. One that changes locks is a [`lock_command`]: it finds its nodes
//! ([`targets`]), asks ([`confirm`]), locks them as a set ([`lock_set`]) or works on each of them
//! ([`parallel`]), and reports their outcomes ([`report`]). Failures are printed by [`problems`], and
//! [`interruption`] notices Ctrl-C.

pub(crate) mod background;
pub(crate) mod confirm;
pub(crate) mod elapsed;
pub(crate) mod events;
pub(crate) mod fencing;
pub(crate) mod interruption;
pub(crate) mod keys;
pub(crate) mod lock_command;
pub(crate) mod lock_set;
mod node_progress;
pub(crate) mod nodes;
pub(crate) mod parallel;
pub(crate) mod problems;
pub(crate) mod program;
pub(crate) mod report;
pub(crate) mod session;
pub(crate) mod side_effects;
pub(crate) mod targets;
pub(crate) mod variables;
mod wait_event;
