//! Spreads the attempts of many waiters for one lock, which all see at the same instant that it is free.
//!
//! Without it, each of them sends a write, and all but one fail. A waiter that never lost a race has no known
//! competitor, and tries at once.

use std::time::Duration;

use crate::env::{Env, jitter};
use crate::protocol::{BootInstant, Version};

/// The range of a waiter that lost a race for the first time.
const FIRST: Duration = Duration::from_millis(128);

const LONGEST: Duration = Duration::from_secs(1);

/// The part by which the range shrinks whenever somebody else was quicker. It is small, because most of
/// the waiters see that at each hand-over. It makes up for newer waiters, who try at once.
const SHRINK: u32 = 32;

/// The range in which a waiter draws the time of its next attempt.
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
        let delay = match self.range {
            Duration::ZERO => Duration::ZERO,
            range => jitter(env, range),
        };
        let start = now.plus(delay.into());
        self.drawn = Some((version, start));
        start
    }

    /// The attempt lost its race.
    pub(super) fn lost(&mut self) {
        self.drawn = None;
        self.range = (self.range * 2).clamp(FIRST, LONGEST);
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
        spread.lost();
        let delays: Vec<Duration> = (0..50).map(|_| delay(&mut spread, 1)).collect();
        assert!(
            delays
                .iter()
                .all(|delay| *delay == delays[0] && *delay < FIRST)
        );
    }

    #[test]
    fn each_lost_race_doubles_the_range_up_to_its_limit() {
        let mut spread = Spread::default();
        let ranges = [128, 256, 512, 1000, 1000].map(Duration::from_millis);
        for range in ranges {
            spread.lost();
            assert_eq!(spread.range, range);
        }
    }

    #[test]
    fn a_long_wait_shortens_the_delay() {
        let mut spread = Spread::default();
        spread.lost();
        let longest = (1..200).map(|version| delay(&mut spread, version)).last();
        assert!(longest < Some(Duration::from_millis(1)), "{longest:?}");
    }
}
