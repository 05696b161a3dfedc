//! The rules: pure functions over small, copyable state.
//!
//! Nothing here is asynchronous, talks to a server, reads a clock or prints. `now` is an argument,
//! strings are interned ids ([`names::Names`]) and times are integers. So tests can explore the shipped
//! code exhaustively.

pub mod clocks;
pub mod deadline;
pub mod decision;
pub mod elect;
pub mod expiry;
pub mod identity;
pub mod keep;
pub mod lease;
pub mod lock_id;
pub mod names;
mod next_change;
#[doc(hidden)]
pub mod relabel;
pub mod state;
pub mod take_expired;
pub mod take_over;
pub mod terms;
#[cfg(test)]
pub(crate) mod testing;
pub mod time;
pub mod transition;
pub mod unknown_write;
pub mod verify;
pub mod wait;
pub mod write_loop;

pub use clocks::{BootInstant, Clocks};
pub use deadline::deadline;
pub(crate) use deadline::{leaves_enough, report_limit};
pub use decision::{Caller, Candidacy, Decision, Refusal, Verb, Write};
pub use expiry::{has_expired, takeover};
pub use keep::{Keeper, KeeperAction, Loss, Sent};
pub use lease::{Acquisition, Holder, Lease, Version};
pub use lock_id::{InvalidLockId, LockId};
pub use names::{Id, Names};
pub use next_change::next_change;
pub(crate) use state::LONGEST_SECONDS;
pub use state::{Flags, LONGEST, State, flags, longest_extension, state};
pub use take_expired::check_finished;
pub use take_over::breaks;
pub use terms::{Expiry, Terms};
pub use time::{Instant, Now, SKEW_BUDGET, Span};
pub use transition::decide;
pub use unknown_write::{WriteOutcome, judge};
pub use verify::check_held;
pub use wait::{SILENCE, Waiter, WaiterAction};
pub use write_loop::{Attempt, Finished, Step, WriteLoop};
