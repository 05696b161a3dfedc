//! What running commands have in common: session, interruption, work on many nodes, and reporting.

pub(crate) mod api_user;
pub(crate) mod change;
pub(crate) mod confirm;
pub(crate) mod events;
pub(crate) mod fencing;
pub(crate) mod interruption;
pub(crate) mod items;
pub(crate) mod lock_set;
pub(crate) mod parallel;
pub(crate) mod policies;
pub(crate) mod problems;
pub(crate) mod session;
pub(crate) mod side_effects;
pub(crate) mod targets;
pub(crate) mod variables;
