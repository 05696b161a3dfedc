//! When a lock expires for everybody else: a margin after the end that its Lease states. Until when its own
//! holder may act is in `deadline.rs`.

use super::lease::Lease;
use super::time::{Instant, Now, SKEW_BUDGET, Span};
use crate::bugs::{self, Bug};

/// Whether a lock has expired if its Lease says that it ends at `end`.
#[must_use]
pub fn has_expired(end: Instant, now: Now) -> bool {
    now.earliest > end + margin()
}

/// The first instant at which somebody else may take a Lease that is held now; `None` if it does not
/// expire.
#[must_use]
pub fn takeover(lease: &Lease) -> Option<Instant> {
    let holder = lease.holder?;
    lease
        .end()
        .filter(|&end| !holder.admin && end != Instant::UNREADABLE)
        .map(|end| end + margin() + Span::TICK)
}

/// How long after its end nobody else may take a Lease.
pub(super) fn margin() -> Span {
    if bugs::active(Bug::ExpiryWithoutMargin) {
        Span::ZERO
    } else {
        SKEW_BUDGET
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::{State, state};
    use super::*;
    use crate::protocol::testing::{ADMIN, ALICE, held, secs};

    #[test]
    fn an_admin_hold_does_not_expire() {
        assert_eq!(takeover(&held(ADMIN, 100, 1)), None);
    }

    #[test]
    fn a_takeover_is_not_allowed_an_instant_before_it_is_due() {
        let lease = held(ALICE, 100, 60);
        let due = takeover(&lease).expect("it ends");
        let at = |at| state(Some(&lease), Now::at(at));
        assert_eq!(at(due - Span::TICK), State::Held { until: secs(160) });
        assert_eq!(
            at(due),
            State::Expired {
                since: Some(secs(160))
            }
        );
    }

    #[test]
    fn no_passing_of_time_frees_what_has_an_unreadable_end() {
        let mut lease = held(ALICE, 100, 60);
        lease.renewed = Some(Instant::UNREADABLE);
        assert_eq!(takeover(&lease), None);
    }
}
