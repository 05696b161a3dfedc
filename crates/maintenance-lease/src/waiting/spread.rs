//! Spreads the attempts of many waiters for one lock, which all see at the same instant that it is free.
//!
//! Without it, each of them sends a write, and all but one fail. A waiter that never lost a race has no known
//! competitor, and tries at once.

use std::time::Duration;

use crate::env::{Env, jitter};
use crate::protocol::{BootInstant, Version};

/// About as long as it takes to see that somebody else was quicker.
const SLOT: Duration = Duration::from_millis(8);

const LONGEST: Duration = Duration::from_secs(1);

/// The part by which a lost race widens the range, beyond one slot: a crowd is recognized soon.
const WIDEN: u32 = 4;

/// The part by which the range shrinks whenever somebody else was quicker. It is small, because most of
/// the waiters see that at each hand-over.
const SHRINK: u32 = 32;

/// The range in which a waiter draws the time of its next attempt, beyond the first slot.
///
/// A time in the first slot means at once. So a waiter that lost few races often tries at once, and those who
/// came later, and try at once too, do not keep the lock from it.
#[derive(Debug, Default)]
pub(super) struct Spread {
    range: Duration,
    /// The version of the Lease that is tried next, and when.
    drawn: Option<(Option<Version>, BootInstant)>,
}

impl Spread {
    /// When to try to acquire what was seen as `version`, drawn once for each version.
    pub(super) fn start(
        &mut self,
        version: Option<Version>,
        now: BootInstant,
        env: &dyn Env,
    ) -> BootInstant {
        if let Some((drawn_for, start)) = self.drawn {
            if drawn_for == version {
                return start;
            }
            self.range -= self.range / SHRINK;
        }
        let delay = match jitter(env, self.range + SLOT) {
            delay if delay < SLOT => Duration::ZERO,
            delay => delay,
        };
        let start = now.plus(delay.into());
        self.drawn = Some((version, start));
        start
    }

    /// The attempt lost its race.
    pub(super) fn lost(&mut self) {
        self.drawn = None;
        self.range = (self.range + SLOT + self.range / WIDEN).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Machine;

    fn at(millis: i64) -> BootInstant {
        BootInstant::from_micros(millis * 1_000)
    }

    fn delay(spread: &mut Spread, version: u64) -> Duration {
        let start = spread.start(Some(Version(version)), at(0), &Machine);
        start.since(at(0)).to_duration()
    }

    #[test]
    fn a_waiter_that_lost_no_race_tries_at_once() {
        let mut spread = Spread::default();
        for version in 1..50 {
            assert_eq!(delay(&mut spread, version), Duration::ZERO);
        }
    }

    #[test]
    fn the_time_is_drawn_once_for_a_version() {
        let mut spread = Spread::default();
        for _ in 0..20 {
            spread.lost();
        }
        let delays: Vec<Duration> = (0..50).map(|_| delay(&mut spread, 1)).collect();
        assert!(delays.iter().all(|delay| *delay == delays[0]), "{delays:?}");
    }

    #[test]
    fn a_waiter_that_lost_one_race_tries_at_once_every_other_time() {
        let mut at_once = 0;
        for version in 0..1000 {
            let mut spread = Spread::default();
            spread.lost();
            let delay = delay(&mut spread, version);
            assert!(delay < 2 * SLOT);
            if delay.is_zero() {
                at_once += 1;
            } else {
                assert!(delay >= SLOT);
            }
        }
        assert!((400..600).contains(&at_once), "{at_once}");
    }

    #[test]
    fn each_lost_race_widens_the_range_up_to_its_limit() {
        let mut spread = Spread::default();
        for range in [8, 18].map(Duration::from_millis) {
            spread.lost();
            assert_eq!(spread.range, range);
        }
        for _ in 0..16 {
            spread.lost();
        }
        assert_eq!(spread.range, LONGEST);
    }

    #[test]
    fn a_long_wait_shortens_the_delay() {
        let mut spread = Spread::default();
        for _ in 0..20 {
            spread.lost();
        }
        for version in 1..300 {
            delay(&mut spread, version);
        }
        assert!(spread.range < Duration::from_millis(1), "{spread:?}");
    }
}
