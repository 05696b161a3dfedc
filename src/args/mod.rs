//! Arguments as typed, and what they mean.

pub(crate) mod acquisitions;
pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod duration;
pub(crate) mod holder;
pub(crate) mod hook;
pub(crate) mod nodes;
pub(crate) mod output;
pub(crate) mod risks;
pub(crate) mod token;
pub(crate) mod until;
pub(crate) mod wait;
pub(crate) mod write;
