//! The holder of the node's lock.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{BootInstant, Instant, Now, Span, State};

use crate::bugs::{self, Bug};
use crate::fencing::is_of_fencing;
use crate::known::Known;

/// The caller's own lock must last at least this long when a deletion begins, because nothing renews it
/// during the deletion.
const OWN_LEASE_MARGIN: Span = Span::seconds(10);

/// The state of the node's lock, as seen by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Nobody holds it.
    Free,
    /// The caller holds it.
    Own {
        /// When it ends; `None` for a hold, which does not expire.
        until: Option<Instant>,
    },
    /// Somebody else holds it.
    Another {
        /// The holder.
        holder: String,
        /// The reason, if the holder gave one.
        why: Option<String>,
        /// When it was acquired, if its Lease says so.
        since: Option<Instant>,
        /// When it ends; `None` for an administrator's hold, which does not expire.
        until: Option<Instant>,
        /// Set if this is the hold of a fencing, which ends when the node is unfenced.
        fencing: Option<FencingProgress>,
    },
    /// Somebody else held it, and it expired without a release.
    Expired {
        /// The last holder.
        holder: String,
    },
}

/// The progress of a fencing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencingProgress {
    /// The node is on hold. A `fence` is running, or was interrupted.
    Begun,
    /// The node is fenced.
    Fenced,
}

impl Lock {
    /// The lock in `lease` (`None` if there is no Lease). `own`: the caller is its holder.
    #[must_use]
    pub fn of(lease: Option<&NodeLease>, own: bool, now: Now) -> Self {
        let Some(lease) = lease else {
            return Self::Free;
        };
        let holder = || lease.holder().unwrap_or_default().to_owned();
        let another = |until| Self::Another {
            holder: holder(),
            why: lease.reason().map(ToOwned::to_owned),
            since: lease.acquired().map(Instant::from),
            until,
            fencing: is_of_fencing(lease, now).then(|| match lease.is_fenced() {
                true => FencingProgress::Fenced,
                false => FencingProgress::Begun,
            }),
        };
        match lease.state(now) {
            State::Free => Self::Free,
            State::Expired { .. } if own => Self::Free,
            State::Held { until } if own => Self::Own { until: Some(until) },
            State::AdminHold if own => Self::Own { until: None },
            State::Held { until } => another(Some(until)),
            State::AdminHold => another(None),
            State::Expired { .. } => Self::Expired { holder: holder() },
        }
    }

    /// Whether it can be acquired because it is free or has expired.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Free | Self::Expired { .. })
    }

    /// The time left if the caller's own lock may end before a request that is sent now has finished. Zero or
    /// less means that it has already ended for the caller; others still wait for the clock skew.
    #[must_use]
    pub fn short(&self, now: Now) -> Option<Span> {
        let Self::Own { until: Some(until) } = self else {
            return None;
        };
        let left = *until - now.latest;
        (left < OWN_LEASE_MARGIN).then_some(left)
    }
}

/// What a deletion needs from the lock of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockNeed {
    /// Acquire the lock first.
    Acquire,
    /// The caller holds the lock, and must still hold it when the deletion begins.
    Keep {
        /// When the lock ends; `None` if it does not expire.
        until: Option<Instant>,
    },
    /// Nothing. The checks have already judged the lock.
    Nothing,
}

impl LockNeed {
    /// What a deletion needs from `lock`. `is_overridden`: the caller overrode the checks of locks.
    #[must_use]
    pub fn of(lock: &Known<Lock>, node_exists: bool, is_overridden: bool) -> Self {
        match lock {
            Known::Yes(Lock::Own { until }) if !is_overridden => Self::Keep { until: *until },
            Known::Yes(Lock::Expired { .. }) if bugs::active(Bug::ExpiredLockIsNotAcquired) => {
                Self::Nothing
            }
            Known::Yes(lock) if lock.has_ended() && node_exists => Self::Acquire,
            _ => Self::Nothing,
        }
    }
}

/// Whether a lock that ends at `end` lasts for a request that is sent now, by the boot clock. `None`: it does
/// not expire.
#[must_use]
pub fn lasts_for_a_request(end: Option<BootInstant>, now: BootInstant) -> bool {
    let margin = match bugs::active(Bug::DeletionAtTheEnd) {
        true => Span::ZERO,
        false => OWN_LEASE_MARGIN,
    };
    end.is_none_or(|end| now.plus(margin) < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_acquires_what_is_free_and_keeps_what_the_caller_has() {
        let until = Some(Instant::from_micros(7));
        let own = || Known::Yes(Lock::Own { until });
        let expired = || {
            let holder = "bob@laptop".to_owned();
            Known::Yes(Lock::Expired { holder })
        };
        let another = Known::Yes(Lock::Another {
            holder: "bob@laptop".to_owned(),
            why: None,
            since: None,
            until,
            fencing: None,
        });
        let keep = LockNeed::Keep { until };
        for (lock, node_exists, is_overridden, expected) in [
            (Known::Yes(Lock::Free), true, false, LockNeed::Acquire),
            (Known::Yes(Lock::Free), true, true, LockNeed::Acquire),
            // The new Lease would belong to no Node.
            (Known::Yes(Lock::Free), false, false, LockNeed::Nothing),
            (expired(), true, false, LockNeed::Acquire),
            (expired(), false, false, LockNeed::Nothing),
            (own(), true, false, keep),
            (own(), false, false, keep),
            (own(), true, true, LockNeed::Nothing),
            (another, true, false, LockNeed::Nothing),
            (Known::default(), true, false, LockNeed::Nothing),
        ] {
            let need = LockNeed::of(&lock, node_exists, is_overridden);
            assert_eq!(need, expected, "{lock:?} {node_exists} {is_overridden}");
        }
    }

    #[test]
    fn a_request_is_not_sent_under_a_lock_that_may_end_before_it() {
        let now = BootInstant::from_micros(0);
        let ends_in = |seconds| Some(now.plus(Span::seconds(seconds)));
        assert!(lasts_for_a_request(None, now));
        assert!(lasts_for_a_request(ends_in(30), now));
        assert!(!lasts_for_a_request(ends_in(10), now));
        assert!(!lasts_for_a_request(ends_in(9), now));
    }
}
