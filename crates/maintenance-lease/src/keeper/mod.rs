//! Keeping an acquisition while something works under it.
//!
//! [`HeldLease`] is the holder's handle. Behind it a task ([`drive`]) carries out what the pure
//! [`Keeper`](crate::protocol::Keeper) asks for: it renews, watches, and declares the loss by its
//! own timer, also while a request hangs.

mod drive;
mod guard;
mod held;
mod lost;
mod standing;

pub use guard::Guarded;
pub use held::{HeldLease, Keep};
pub use lost::{Lost, LostBy};
pub use standing::Standing;
