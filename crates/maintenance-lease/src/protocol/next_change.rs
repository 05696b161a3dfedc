//! When the state of a Lease changes by time alone.

use super::expiry::margin;
use super::lease::Lease;
use super::state::{LONGEST, flags, state};
use super::time::{Instant, Now, SKEW_BUDGET, Span};

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
    fn states_without_a_time_never_change_by_themselves() {
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
