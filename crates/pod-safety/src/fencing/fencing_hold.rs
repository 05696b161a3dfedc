//! The hold that keeps others away from a node while it is fenced.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};

/// The purpose of such a hold. After a crash, a later run recognizes the hold by its purpose and knows that
/// it may end it.
pub const PURPOSE: &str = "fencing";

/// Whether `lease` is a hold that fencing acquired. It lasts until the node is unfenced.
#[must_use]
pub fn is_of_fencing(lease: &NodeLease, now: Now) -> bool {
    lease.purpose() == Some(PURPOSE) && lease.state(now) == State::AdminHold
}

/// Whether only `unfence` may end the lock in `lease`. It is the hold of a fencing, or another lock on a
/// fenced node. Without a lock, nothing keeps others away from the node until it is unfenced.
#[must_use]
pub fn protects_fencing(lease: &NodeLease, now: Now) -> bool {
    let is_locked = matches!(lease.state(now), State::Held { .. } | State::AdminHold);
    is_of_fencing(lease, now) || (lease.is_fenced() && is_locked)
}
