//! Keeping an acquisition while something works under it.
//!
//! [`HeldLease`] is the holder's handle. Behind it a task ([`task`]) carries out what the pure
//! [`Keeper`](crate::protocol::Keeper) asks for: it renews, watches, and declares the loss by its
//! own timer, also while a request hangs.

mod guard;
mod held_lease;
mod held_state;
mod lost;
mod task;

pub use guard::Guarded;
pub use held_lease::{HeldLease, Keep};
pub use held_state::HeldState;
pub use lost::{Lost, LostBy};
