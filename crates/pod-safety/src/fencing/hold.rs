//! The hold that a node is fenced under.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};

/// What such a hold is for: whoever runs it again after a crash knows the hold by it, and so what to end
/// one day.
pub const PURPOSE: &str = "fencing";

/// Whether `lease` is a hold that fencing took. It lasts until the node is unfenced.
#[must_use]
pub fn is_of_fencing(lease: &NodeLease, now: Now) -> bool {
    lease.purpose() == Some(PURPOSE) && lease.state(now) == State::AdminHold
}
