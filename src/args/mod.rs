//! Arguments as typed, and what they mean.

pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod deprecated;
pub(crate) mod duration;
pub(crate) mod holder;
pub(crate) mod hook;
pub(crate) mod lock_id;
pub(crate) mod nodes;
pub(crate) mod output;
pub(crate) mod risks;
pub(crate) mod take_expired;
pub(crate) mod until;
pub(crate) mod wait;
pub(crate) mod write;

/// The heading of the connection flags. `options` lists them; the help of other commands does not.
pub(crate) const HEADING: &str = "Connection";
