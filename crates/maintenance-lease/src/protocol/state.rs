//! The four states of a node's Lease, and the function that determines them. `expiry.rs` says when a lock
//! has expired.

use super::expiry::has_expired;
use super::lease::Lease;
use super::time::{Instant, Now, SKEW_BUDGET, Span};

/// The longest maintenance that KEP-1411 allows without a renewal.
pub const LONGEST: Span = Span::seconds(LONGEST_SECONDS);

/// The same, as a Lease stores it.
pub(super) const LONGEST_SECONDS: u32 = 3600;

/// Who may do what with a node now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nobody holds it.
    Free,
    /// Somebody holds it.
    Held {
        /// The end that the Lease states; others may take it 3 s later.
        until: Instant,
    },
    /// Its holder did not finish in time: anyone may take it.
    Expired {
        /// The end that the Lease stated; `None` if it records no times at all.
        since: Option<Instant>,
    },
    /// An administrator holds it until they end the hold, regardless of the times.
    AdminHold,
}

impl State {
    /// Whether somebody has the lock: it has not expired, or is a hold.
    #[must_use]
    pub const fn is_locked(self) -> bool {
        matches!(self, Self::Held { .. } | Self::AdminHold)
    }

    /// The end that the Lease states, in the future or the past; `None` if it states none, or if the end
    /// has no meaning.
    #[must_use]
    pub fn end(self) -> Option<Instant> {
        match self {
            Self::Held { until } => Some(until),
            Self::Expired { since } => since,
            Self::Free | Self::AdminHold => None,
        }
    }
}

/// The state of a Lease (`None`: there isn't one) at `now`.
#[must_use]
pub fn state(lease: Option<&Lease>, now: Now) -> State {
    let Some(lease) = lease else {
        return State::Free;
    };
    match lease.holder {
        None => State::Free,
        Some(holder) if holder.admin => State::AdminHold,
        Some(_) => match lease.end() {
            Some(until) if !has_expired(until, now) => State::Held { until },
            since => State::Expired { since },
        },
    }
}

/// What is unusual about a held Lease, shown to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// A time that can't be read, such as one in the year 9999.
    pub unreadable_time: bool,
    /// The renewal is in the future by more than the clock budget: the holder's clock is ahead.
    pub clock_ahead: bool,
    /// It ends more than an hour from now, or went unrenewed for longer than that while held.
    pub overlong: bool,
}

/// The oddities of `lease` at `now`. A free Lease has none. For an administrator's hold the times do not
/// count.
#[must_use]
pub fn flags(lease: &Lease, now: Now) -> Flags {
    let State::Held { until } = state(Some(lease), now) else {
        return Flags::default();
    };
    let last = lease.renewed.or(lease.acquired);
    let unreadable_time = [lease.acquired, lease.renewed].contains(&Some(Instant::UNREADABLE));
    Flags {
        unreadable_time,
        clock_ahead: !unreadable_time && last.is_some_and(|last| last > now.latest + SKEW_BUDGET),
        overlong: until > now.latest + LONGEST + SKEW_BUDGET
            || last.is_some_and(|last| now.earliest > last + LONGEST + SKEW_BUDGET),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::testing::{ADMIN, ALICE, held, secs};

    #[test]
    fn without_a_lease_or_a_holder_it_is_free() {
        assert_eq!(state(None, Now::at(secs(0))), State::Free);
        let mut lease = held(ALICE, 100, 60);
        lease.holder = None;
        assert_eq!(state(Some(&lease), Now::at(secs(100))), State::Free);
    }

    #[test]
    fn it_is_held_up_to_and_with_the_last_instant_of_the_margin() {
        let lease = held(ALICE, 100, 60);
        let until = secs(160);
        for (now, expected) in [
            (secs(100), State::Held { until }),
            (secs(160), State::Held { until }),
            (secs(163), State::Held { until }),
            (
                secs(163) + Span::micros(1),
                State::Expired { since: Some(until) },
            ),
        ] {
            assert_eq!(state(Some(&lease), Now::at(now)), expected, "at {now:?}");
        }
    }

    #[test]
    fn expiry_is_judged_by_the_earliest_clock() {
        let lease = held(ALICE, 100, 60);
        let now = Now::between(secs(163), secs(900));
        assert_eq!(state(Some(&lease), now), State::Held { until: secs(160) });
    }

    #[test]
    fn an_admin_hold_outlives_its_times() {
        let lease = held(ADMIN, 100, 1);
        assert_eq!(
            state(Some(&lease), Now::at(secs(1_000_000))),
            State::AdminHold
        );
    }

    #[test]
    fn missing_times_count_as_the_design_says() {
        let mut lease = held(ALICE, 100, 60);
        lease.renewed = None;
        assert_eq!(
            state(Some(&lease), Now::at(secs(163))),
            State::Held { until: secs(160) }
        );
        lease.acquired = None;
        assert_eq!(
            state(Some(&lease), Now::at(secs(0))),
            State::Expired { since: None }
        );
        let mut lease = held(ALICE, 100, 60);
        lease.duration = 0;
        assert_eq!(
            state(Some(&lease), Now::at(secs(104))),
            State::Expired {
                since: Some(secs(100))
            }
        );
    }

    #[test]
    fn an_unreadable_time_is_held_and_flagged() {
        let mut lease = held(ALICE, 100, 60);
        lease.renewed = Some(Instant::UNREADABLE);
        let now = Now::at(secs(100));
        assert!(matches!(state(Some(&lease), now), State::Held { .. }));
        assert_eq!(
            flags(&lease, now),
            Flags {
                unreadable_time: true,
                clock_ahead: false,
                overlong: true
            }
        );
    }

    #[test]
    fn a_renewal_in_the_future_holds_and_is_flagged_past_the_budget() {
        let lease = held(ALICE, 100, 60);
        assert!(!flags(&lease, Now::at(secs(97))).clock_ahead);
        assert!(flags(&lease, Now::at(secs(96))).clock_ahead);
    }

    #[test]
    fn more_than_an_hour_left_or_unrenewed_is_overlong() {
        assert!(!flags(&held(ALICE, 100, 3600), Now::at(secs(100))).overlong);
        assert!(flags(&held(ALICE, 100, 3604), Now::at(secs(100))).overlong);
        let lease = held(ALICE, 100, 7200);
        assert!(flags(&lease, Now::at(secs(100 + 3604))).overlong);
    }
}
