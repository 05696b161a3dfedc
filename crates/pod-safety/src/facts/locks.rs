//! Who else works on the node.

use k8s_openapi::api::coordination::v1::Lease;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Instant, Now, SKEW_BUDGET, Span, State};

use crate::wire::micro_instant;

/// How long a lease of the caller's own lasts at least for a deletion to begin: nobody renews it
/// meanwhile.
const LASTING: Span = Span::seconds(10);

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
        /// Why, where they say so.
        why: Option<String>,
        /// Until when; `None`: an administrator's hold, which has no end.
        until: Option<Instant>,
    },
    /// Somebody had it and did not finish.
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
        };
        match lease.state(now) {
            State::Free => Self::Free,
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
        (left < LASTING).then_some(left)
    }
}

/// Whether an operator is at work on the node, such as medik8s' remediation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remediation {
    /// None says so, or its Lease ran out.
    None,
    /// One holds its Lease of the node.
    Running {
        /// Which.
        holder: String,
    },
    /// One put its taint on the node.
    Tainted {
        /// Which, with its value.
        taint: String,
    },
}

impl Remediation {
    /// That of `lease` (`None`: there is none).
    #[must_use]
    pub fn of(lease: Option<&Lease>, now: Now) -> Self {
        let running = lease.and_then(|lease| {
            let spec = lease.spec.as_ref()?;
            let holder = spec
                .holder_identity
                .clone()
                .filter(|holder| !holder.is_empty())?;
            let renewed = micro_instant(spec.renew_time.as_ref().or(spec.acquire_time.as_ref())?);
            let seconds = u32::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
            let end = renewed + Span::seconds(seconds);
            (now.earliest <= end + SKEW_BUDGET).then_some(holder)
        });
        running.map_or(Self::None, |holder| Self::Running { holder })
    }
}
