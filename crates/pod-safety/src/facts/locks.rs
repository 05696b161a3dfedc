//! Who has the node's lock.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, Span, State};

use crate::fencing::is_of_fencing;

/// How long a lease of the caller's own lasts at least for a deletion to begin: nobody renews it
/// meanwhile.
pub const OWN_LEASE_MARGIN: Span = Span::seconds(10);

/// The node's maintenance Lease, as it concerns the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Nobody has it.
    Free,
    /// The caller has.
    Own {
        /// Until when; `None`: their hold, which has no end.
        until: Option<Instant>,
    },
    /// Somebody else has.
    Another {
        /// Who.
        holder: String,
        /// The reason, if the holder gave one.
        why: Option<String>,
        /// Until when; `None`: an administrator's hold, which has no end.
        until: Option<Instant>,
        /// It is the hold of a fencing, which ends when the node is unfenced.
        fences: bool,
    },
    /// Somebody else had it and did not finish.
    Expired {
        /// Who.
        holder: String,
    },
}

impl Lock {
    /// That of `lease` (`None`: there is none), which is the caller's own or not.
    #[must_use]
    pub fn of(lease: Option<&NodeLease>, own: bool, now: Now) -> Self {
        let Some(lease) = lease else {
            return Self::Free;
        };
        let holder = || lease.holder().unwrap_or_default().to_owned();
        let another = |until| Self::Another {
            holder: holder(),
            why: lease.reason().map(ToOwned::to_owned),
            until,
            fences: is_of_fencing(lease, now),
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

    /// How much is left of a lease of the caller's own that may end before a request does that is sent
    /// under it; nothing or less: it is over, and only the margin for others' clocks keeps them away.
    #[must_use]
    pub fn short(&self, now: Now) -> Option<Span> {
        let Self::Own { until: Some(until) } = self else {
            return None;
        };
        let left = *until - now.latest;
        (left < OWN_LEASE_MARGIN).then_some(left)
    }
}
