//! Fencing in words and as data: refusals, what is left, results.

mod confirmation;
mod cost;
mod failure;
mod fencing_hold;
mod machine;
mod progress;
mod refusal;
mod remains;
mod retry;

pub(crate) use self::confirmation::Question;
pub(crate) use self::cost::{REASON, cost};
pub(crate) use self::failure::{
    HOOK_NOT_RUN, HOOK_STILL_RUNNING, PROCESSES_LEFT, hook_not_followed, hook_stays,
    no_longer_fenced, not_kept, of_hook, stays, taken_while_running, unknown, unread,
};
pub(crate) use self::fencing_hold::{
    end_of_hold, hold_ended, hold_left, hold_lost, hold_not_ended, hold_reason, hold_stays,
    kept_on_hold, not_marked, on_hold, taken_by,
};
pub(crate) use self::progress::{
    awaited, awaiting, dry_run_hook, fenced, lease_ends, not_fenced, not_known, odd_clock,
    record_line, replaced, unfenced, unreadable_replaced, unrecorded, waiting_for_reports_to_stop,
    waits_for_reports_to_stop, watching,
};
pub(crate) use self::refusal::{refusal, risk};
pub(crate) use self::remains::{
    count, counts, incomplete, kubelet_state_unknown, left, nothing_left, remaining_pods,
    stays_fenced, tolerating, unchanged, undone_but_fenced, unread_volumes,
};
pub(crate) use self::retry::resuming;
