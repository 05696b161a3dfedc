//! Fencing in words and as data: refusals, what is left, results.

mod cost;
mod failure;
mod hold;
mod machine;
mod progress;
mod refusal;
mod remains;
mod retry;

pub(crate) use self::cost::cost;
pub(crate) use self::failure::{of_hook, unknown};
pub(crate) use self::hold::{hold_left, hold_lost, hold_not_ended, hold_stays, taken_by};
pub(crate) use self::progress::{
    awaited, fenced, lease_ends, lease_ends_with_outer, story, unrecorded, was_fenced, watching,
};
pub(crate) use self::refusal::refusal;
pub(crate) use self::remains::{count, left, still_there, tolerating, unsure};
pub(crate) use self::retry::resume;
