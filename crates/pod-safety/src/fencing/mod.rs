//! Fencing: recording the proof that nothing runs on a node any more, and telling Kubernetes.

pub mod attempt;
pub mod cost;
pub mod fencing_hold;
pub mod machine;
pub mod patch;
pub mod record;
pub mod recording;
pub mod remains;
pub mod steps;
pub mod unchanged_heartbeat;
pub mod unfencing;

pub use attempt::Attempt;
pub use cost::Cost;
pub use fencing_hold::{is_of_fencing, protects_fencing};
pub use machine::Machine;
pub use record::{How, Proof, Record};
pub use recording::{Recording, Written};
pub use remains::Remains;
pub use unchanged_heartbeat::UnchangedHeartbeat;
