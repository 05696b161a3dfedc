//! The four states of a node's Lease, and the function that determines them. `expiry.rs` says when a lock
//! has expired.

use super::expiry::has_expired;
use super::lease::Lease;
use super::time::{Instant, Now, SKEW_BUDGET, Span};

/// The longest maintenance that KEP-1411 allows without a renewal.
pub const LONGEST: Span = Span::seconds(LONGEST_SECONDS);

/// The same, as a Lease stores it.
pub(crate) const LONGEST_SECONDS: u32 = 3600;

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

    /// How much is left until the end that the Lease states, by the clock that expiry is judged by. It is negative
    /// while others may not take the lock yet only because clocks may differ. `None` if it is not held, or has no
    /// known end.
    #[must_use]
    pub fn left(self, now: Now) -> Option<Span> {
        self.known_end().map(|until| until - now.earliest)
    }

    /// How much is left at least, by any clock: what may be planned with. `None` as for [`left`](Self::left).
    #[must_use]
    pub fn left_at_least(self, now: Now) -> Option<Span> {
        self.known_end().map(|until| until - now.latest)
    }

    fn known_end(self) -> Option<Instant> {
        match self {
            Self::Held { until } => Some(until).filter(|&until| until != Instant::UNREADABLE),
            Self::Free | Self::Expired { .. } | Self::AdminHold => None,
        }
    }

    /// Whether its end has come, to the second, and others may not take it yet only because clocks may differ.
    #[must_use]
    pub fn is_ending(self, now: Now) -> bool {
        const HALF_A_SECOND: Span = Span::micros(500_000);
        self.left(now).is_some_and(|left| left < HALF_A_SECOND)
    }

    /// How long ago it ended, if it has expired; `None` also if the Lease records no times.
    #[must_use]
    pub fn expired_for(self, now: Now) -> Option<Span> {
        match self {
            Self::Expired { since } => since.map(|since| now.earliest - since),
            Self::Free | Self::Held { .. } | Self::AdminHold => None,
        }
    }
}

/// How much may be added to a lock that has this much time left; negative if it has more than
/// [`LONGEST`] already.
#[must_use]
pub fn longest_extension(left: Span) -> Span {
    Span::micros(
        LONGEST
            .as_micros()
            .saturating_sub(left.max(Span::ZERO).as_micros()),
    )
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
    fn what_is_left_is_judged_like_expiry_and_planned_with_by_the_latest_clock() {
        let state = State::Held { until: secs(160) };
        let now = Now::between(secs(100), secs(101));
        assert_eq!(state.left(now), Some(Span::seconds(60)));
        assert_eq!(state.left_at_least(now), Some(Span::seconds(59)));
        assert_eq!(
            state.left(Now::at(secs(162))),
            Some(Span::micros(-2_000_000))
        );
        for state in [
            State::Free,
            State::AdminHold,
            State::Expired {
                since: Some(secs(90)),
            },
            State::Held {
                until: Instant::UNREADABLE,
            },
        ] {
            assert_eq!(state.left(now), None, "{state:?}");
            assert_eq!(state.left_at_least(now), None, "{state:?}");
            assert!(!state.is_ending(now), "{state:?}");
        }
    }

    #[test]
    fn a_lock_is_ending_from_half_a_second_before_its_end() {
        let state = State::Held { until: secs(160) };
        let half = Span::micros(500_000);
        assert!(!state.is_ending(Now::at(secs(160) - half)));
        assert!(state.is_ending(Now::at(secs(160) - half + Span::TICK)));
        assert!(state.is_ending(Now::at(secs(163))));
        assert!(
            !state.is_ending(Now::between(secs(159), secs(163))),
            "the earliest clock counts"
        );
    }

    #[test]
    fn an_extension_fills_what_is_left_up_to_the_longest() {
        for (left, most) in [(0, 3600), (600, 3000), (3600, 0)] {
            let left = Span::seconds(left);
            assert_eq!(longest_extension(left), Span::seconds(most), "{left:?}");
        }
        assert_eq!(longest_extension(Span::micros(-1)), LONGEST);
        assert!(longest_extension(Span::seconds(3601)) < Span::ZERO);
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
