//! What a lock asks of its Node, and what other tools do to a node.
//!
//! [`wanted`] and [`end`] are pure functions of the Node and its lock. [`set`] and [`remove`] read both and send what they return,
//! as one server-side apply by the field manager [`FIELD_MANAGER`]. [`findings`] reads what other tools do to a node.

#![warn(missing_docs)]

mod asked;
mod findings;
mod keys;
mod managed_fields;
mod opt_outs;
mod other_locks;
mod writes;

pub use asked::{Asked, Cordon};
pub use findings::{Activity, Finding, findings, medik8s_finding, medik8s_lease_path};
pub use keys::{
    Conflict, HELD, Mismatch, Mode, NodeKeys, Wanted, apply, asks, end, has_ended_id, wanted,
};
pub use managed_fields::FIELD_MANAGER;
pub use opt_outs::{OptOuts, UnknownTool, tools};
pub use other_locks::{KuredLock, kured_locks};
pub use writes::{NotSet, clear, follow_end, remove, set};
