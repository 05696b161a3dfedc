//! Fencing in words and as data: refusals, what is left, results.

mod cost;
mod failure;
mod hold;
mod machine;
mod progress;
mod refusal;
mod remains;
mod retry;

pub(crate) use self::cost::{cost, no_owner};
pub(crate) use self::failure::{
    gone_after_hook, hook_failed, hook_interrupted, record_open, return_open, silent_after_hook,
};
pub(crate) use self::hold::{
    hold_left, hold_lost, hold_not_ended, hold_stays, not_ended, not_held, taken_by,
};
pub(crate) use self::progress::{
    awaited, fenced, lease_ends, lease_ends_with_outer, story, unrecorded, was_fenced, watching,
};
pub(crate) use self::refusal::{
    back_alive, fenced_anew, hold_of_fencing, hook_running, refusal, stays, too_short,
};
pub(crate) use self::remains::{count, left, stuck, tolerating, unsure};
pub(crate) use self::retry::resume;
