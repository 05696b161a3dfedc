//! Fencing: making sure that nothing runs on a node any more, and saying so.

pub mod record;

pub use record::Record;
