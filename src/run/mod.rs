//! What commands have in common while they run: the session, interruption, many nodes at once, and what is
//! told and done on the way.

pub(crate) mod change;
pub(crate) mod confirm;
pub(crate) mod events;
pub(crate) mod fencing;
pub(crate) mod interruption;
pub(crate) mod lock_set;
pub(crate) mod parallel;
pub(crate) mod problems;
pub(crate) mod session;
pub(crate) mod side_effects;
pub(crate) mod targets;
pub(crate) mod variables;
