//! The four states of a node's Lease, and the function that determines them.

use super::lease::Lease;
use super::time::{Instant, Now, SKEW_BUDGET, Span};
use crate::bugs::{self, Bug};

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
    /// Whether somebody has it: a lock that has not expired, or a hold.
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
            Some(until) if now.earliest <= until + margin() => State::Held { until },
            since => State::Expired { since },
        },
    }
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
fn margin() -> Span {
    if bugs::active(Bug::ExpiryWithoutMargin) {
        Span::ZERO
    } else {
        SKEW_BUDGET
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

/// The first instant after the present at which [`state`] or [`flags`] change if nobody writes, because
/// of time alone. `None`: never.
///
/// Read on the earliest clock, with the latest as far ahead of it as it is now.
#[must_use]
pub fn next_change(lease: &Lease, now: Now) -> Option<Instant> {
    let spread = now.latest - now.earliest;
    let shown_at = |at: Instant| {
        let now = Now::between(at, at + spread);
        (state(Some(lease), now), flags(lease, now))
    };
    let until = lease.end()?;
    let last = lease.renewed.or(lease.acquired)?;
    let thresholds = [
        until + margin() + Span::TICK,
        last + LONGEST + SKEW_BUDGET + Span::TICK,
        until - LONGEST - SKEW_BUDGET - spread,
        last - SKEW_BUDGET - spread,
    ];
    let shown = shown_at(now.earliest);
    thresholds
        .into_iter()
        .filter(|&at| at > now.earliest && shown_at(at) != shown)
        .min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        assert_eq!(takeover(&lease), None);
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

    /// The instants at which a Lease changes by itself, from `now` on, in seconds and ticks.
    fn changes(lease: &Lease, mut now: Now) -> Vec<Instant> {
        let spread = now.latest - now.earliest;
        let mut changes = Vec::new();
        while let Some(at) = next_change(lease, now) {
            changes.push(at);
            now = Now::between(at, at + spread);
        }
        changes
    }

    #[test]
    fn a_lease_changes_by_itself_once_its_margin_is_over() {
        let lease = held(ALICE, 100, 60);
        assert_eq!(
            changes(&lease, Now::at(secs(100))),
            [secs(163) + Span::TICK]
        );
    }

    #[test]
    fn a_clock_that_is_ahead_and_a_length_that_is_over_the_hour_change_by_themselves() {
        let lease = held(ALICE, 10_000, 3_600);
        let ends = secs(13_603) + Span::TICK;
        // Overlong and ahead of the clock, until the present comes near enough.
        assert_eq!(changes(&lease, Now::at(secs(9_000))), [secs(9_997), ends]);
        let long = held(ALICE, 10_000, 5_000);
        assert_eq!(
            changes(&long, Now::at(secs(10_000))),
            [
                secs(11_397),
                secs(13_603) + Span::TICK,
                secs(15_003) + Span::TICK
            ]
        );
    }

    #[test]
    fn flags_change_by_the_latest_clock_and_states_by_the_earliest() {
        let lease = held(ALICE, 10_000, 60);
        let now = Now::between(secs(9_000), secs(9_010));
        assert_eq!(
            changes(&lease, now),
            [secs(9_987), secs(10_063) + Span::TICK]
        );
    }

    #[test]
    fn what_no_time_changes_never_changes_by_itself() {
        let now = Now::at(secs(100));
        let mut lease = held(ALICE, 100, 60);
        lease.holder = None;
        assert_eq!(next_change(&lease, now), None, "free");
        assert_eq!(next_change(&held(ADMIN, 100, 60), now), None, "a hold");
        let expired = Now::at(secs(164));
        assert_eq!(next_change(&held(ALICE, 100, 60), expired), None, "expired");
    }

    proptest! {
        #[test]
        fn nothing_changes_before_the_next_change_and_something_at_it(
            renewed in 0_u32..20_000,
            duration in 0_u32..12_000,
            now in 0_u32..40_000,
            spread in 0_u32..10,
            share in 0.0..1.0,
        ) {
            let lease = held(ALICE, renewed, duration);
            let at = |earliest: Instant| {
                let now = Now::between(earliest, earliest + Span::seconds(spread));
                (state(Some(&lease), now), flags(&lease, now))
            };
            let present = Now::between(secs(now), secs(now + spread));
            let next = next_change(&lease, present);
            let end = next.unwrap_or_else(|| secs(1_000_000));
            let length = (end - secs(now)).as_micros() - 1;
            let between = secs(now) + Span::micros((length as f64 * share) as i64);
            prop_assert_eq!(at(between), at(secs(now)));
            prop_assert_eq!(at(end - Span::TICK), at(secs(now)));
            if let Some(next) = next {
                prop_assert_ne!(at(next), at(secs(now)));
            }
        }
    }
}
