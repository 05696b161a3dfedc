//! The hold that a node is fenced under.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};

/// The purpose of such a hold. A run after a crash recognizes the hold by it, and knows that it may end
/// the hold later.
pub const PURPOSE: &str = "fencing";

/// Whether `lease` is a hold that fencing took. It lasts until the node is unfenced.
#[must_use]
pub fn is_of_fencing(lease: &NodeLease, now: Now) -> bool {
    lease.purpose() == Some(PURPOSE) && lease.state(now) == State::AdminHold
}

/// Whether only `unfence` may end the lock in `lease`: it is the hold of a fencing, or the lock that a
/// fenced node has instead. Without a lock, nothing keeps others off the node until it is unfenced.
#[must_use]
pub fn protects_fencing(lease: &NodeLease, now: Now) -> bool {
    let is_locked = matches!(lease.state(now), State::Held { .. } | State::AdminHold);
    is_of_fencing(lease, now) || (lease.is_fenced() && is_locked)
}
