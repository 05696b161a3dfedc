//! Nodes with their locks and their health: what is read, which of them are shown, and how they change.

pub(crate) mod filter;
pub(crate) mod follow;
pub(crate) mod node_details;
pub(crate) mod read;
pub(crate) mod snapshot;
pub(crate) mod sort;
