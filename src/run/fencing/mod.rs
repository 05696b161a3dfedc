//! What `fence` and `unfence` share: the node, its state, its lock and a hook.

mod follow;
mod hook;
mod lock;
mod run_hook;
mod target;
mod timeout;
mod variables;

pub(crate) use self::hook::Hook;
pub(crate) use self::lock::may_end;
pub(crate) use self::run_hook::KEPT_OUTPUT;
pub(crate) use self::target::{Attempts, FencingTarget, Observed};
pub(crate) use self::timeout::Timeout;
