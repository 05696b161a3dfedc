//! Seeded worlds in which the real library meets every fault, in tokio's paused time.
//!
//! A seed determines a whole world. Clients behave differently. Clocks of machines are wrong, drift and
//! stand still. The network delays, loses and cuts. The API server restarts, and people edit Leases
//! against every rule. [`live`] runs it in one thread, with no randomness except from the seed, and
//! returns what happened. [`check`] checks that against the rules that the library promises to keep.

#![warn(missing_docs)]

mod agents;
pub mod checker;
pub mod fault;
pub mod fault_counts;
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
pub use network::{Faults, Latency};
pub use plan::{ClientKind, ClientPlan, Plan, ScheduledEvent};
pub use time::{EPOCH, Time};
pub use world::live;
