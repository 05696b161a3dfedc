//! Seeded worlds in which the real library meets every fault, in tokio's paused time.
//!
//! A seed is a whole world: some clients with habits of their own, machines whose clocks are wrong,
//! drift and stand still, a network that delays, loses and cuts, an API server that restarts, and
//! hands that reach past every rule. [`live`] lives through it in one thread, in which nothing is
//! random that the seed doesn't say, and tells what happened; [`check`] judges that by the rules
//! that the library promises to keep.

#![warn(missing_docs)]

mod agents;
pub mod checker;
pub mod faults;
pub mod history;
mod machine;
mod network;
mod observer;
mod plan;
mod time;
pub mod trace;
mod world;

pub use checker::{Violation, check};
pub use machine::Clocks;
pub use network::{Faults, Hurry};
pub use plan::{ClientPlan, Habit, Happening, Plan};
pub use time::{EPOCH, Time};
pub use world::live;
