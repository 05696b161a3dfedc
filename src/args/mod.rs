//! Arguments as typed, and what they mean.

pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod default_holder;
pub(crate) mod duration;
pub(crate) mod fencing;
pub(crate) mod hook;
pub(crate) mod lock_id;
pub(crate) mod nodes;
pub(crate) mod output;
pub(crate) mod protect;
pub(crate) mod risks;
pub(crate) mod status;
pub(crate) mod take_expired;
pub(crate) mod until;
pub(crate) mod usage_errors;
pub(crate) mod wait;
pub(crate) mod write;
