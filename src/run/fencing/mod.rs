//! What `fence` and `unfence` share: the node, its state, its lock and a hook.

mod attempt;
mod follow;
mod hook;
mod hook_program;
mod lock;
mod target;
mod timeout;
mod variables;

pub(crate) use self::attempt::Hook;
pub(crate) use self::lock::{LeaseEnd, may_end};
pub(crate) use self::target::{Attempts, Ended, FencingSession, FencingTarget, Observed};
pub(crate) use self::timeout::Timeout;
