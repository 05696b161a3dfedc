//! How an acquisition is kept: its length, when it is renewed, and how much time is reserved to end the
//! work.

use super::time::{SKEW_BUDGET, Span};

/// How a contender detects that a holder's time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// The server's time and the margin of 3 s. If the contender saw the Lease change, the same time must
    /// also have passed since then by its own boot clock. The first detects expiry if clocks agree; the
    /// second keeps it safe if they don't.
    ServerTime,
    /// Only its own boot clock: the contender saw the record unchanged for as long as the record says. Holders
    /// of such Leases may have any wall clock (client-go's leader election).
    OwnEyes,
}

/// How an acquisition is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The length that every renewal asks for, in seconds.
    pub duration: u32,
    /// How long before the deadline the work is asked to stop, to end in time.
    pub stop: Span,
    /// How long after one renewal was sent the next is due.
    pub every: Span,
    /// How others detect that it has expired.
    pub expiry: Expiry,
}

impl Terms {
    /// The shortest time between two renewals that can be asked for by how many may fail.
    pub const SHORTEST_INTERVAL: Span = Span::seconds(1);

    /// Renewals at a third of the duration.
    #[must_use]
    pub const fn new(duration: u32, stop: Span) -> Self {
        Self {
            duration,
            stop,
            every: renewal_interval(duration),
            expiry: Expiry::ServerTime,
        }
    }

    /// The same, if others detect by `expiry` that it has expired.
    #[must_use]
    pub const fn until(self, expiry: Expiry) -> Self {
        Self { expiry, ..self }
    }

    /// Renews often enough that the work has to stop only after `missed` renewals in a row (at least one)
    /// have failed. The interval is (duration − stop) / (missed + 1), which is also the longest time that
    /// a failing renewal may take. `None` if that is less than
    /// [`SHORTEST_INTERVAL`](Self::SHORTEST_INTERVAL).
    #[must_use]
    pub fn tolerating(missed: u32, duration: u32, stop: Span) -> Option<Self> {
        let work = Span::seconds(duration)
            .as_micros()
            .saturating_sub(stop.as_micros());
        let every = Span::micros(work / (i64::from(missed.max(1)) + 1));
        (every >= Self::SHORTEST_INTERVAL).then_some(Self {
            duration,
            stop,
            every,
            expiry: Expiry::ServerTime,
        })
    }

    /// The shortest duration, in seconds, that [`tolerating`](Self::tolerating) accepts: stop + (missed + 1) ×
    /// 1 s, rounded up to whole seconds, and limited to the longest possible one.
    #[must_use]
    pub fn shortest_tolerating(missed: u32, stop: Span) -> u32 {
        let renewals = Self::SHORTEST_INTERVAL.as_micros() * (i64::from(missed.max(1)) + 1);
        let seconds = Span::micros(stop.as_micros().saturating_add(renewals)).ceil_seconds();
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// A renewal is due at a third of the duration. If it takes all of `request` to fail, there must be time
    /// left before the work has to stop: duration ≥ 3/2 × (request + stop), rounded up to whole seconds, and
    /// limited to the longest possible one.
    #[must_use]
    pub const fn shortest(request: Span, stop: Span) -> u32 {
        let either = request.as_micros().saturating_add(stop.as_micros());
        let doubled = either.saturating_mul(3).saturating_add(1);
        match Span::micros(doubled / 2).ceil_seconds() {
            ..1 => 1,
            seconds @ 1..LONGEST => seconds as u32,
            LONGEST.. => u32::MAX,
        }
    }

    /// How much earlier the holder stops believing if it knows only the server's time. Contenders that use the
    /// server's time wait longer by the same amount, but those that use their own clocks don't.
    pub(super) const fn margin(self) -> Span {
        match self.expiry {
            Expiry::ServerTime => Span::ZERO,
            Expiry::OwnEyes => SKEW_BUDGET,
        }
    }

    /// The longest pause before a request is retried, for a Lease of `duration` seconds.
    pub(super) fn pause_of(self, duration: u32) -> Span {
        let tenth = Span::micros(self.every_of(duration).as_micros() / 10);
        tenth.min(Span::seconds(10))
    }

    /// The longest that a request may take. It ends when the next renewal is due. It takes at most half
    /// of the time from when a renewal is due until the work has to stop, to leave time for a retry.
    #[must_use]
    pub fn request(self) -> Span {
        let until_stop = (Span::seconds(self.duration).as_micros() - self.every.as_micros())
            .saturating_sub(self.stop.as_micros());
        let until_next = self.every.as_micros() - self.pause_of(self.duration).as_micros();
        Span::micros((until_stop / 2).min(until_next))
    }

    /// The interval between renewals of a Lease of `duration` seconds, which may be shorter than
    /// requested.
    pub(super) fn every_of(self, duration: u32) -> Span {
        let duration = duration.min(self.duration);
        // A hold's duration, in microseconds, leaves no room for a product in 64 bits.
        let every = i128::from(self.every.as_micros()) * i128::from(duration)
            / i128::from(self.duration.max(1));
        Span::micros(i64::try_from(every).unwrap_or(i64::MAX))
    }
}

/// The longest possible duration, in seconds.
const LONGEST: i64 = u32::MAX as i64;

/// A third of so many seconds.
const fn renewal_interval(seconds: u32) -> Span {
    Span::micros(Span::seconds(seconds).as_micros() / 3)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_longest_duration_that_a_lease_can_have_is_kept_like_any_other() {
        let longest = i32::MAX.unsigned_abs();
        let terms = Terms::new(longest, Span::seconds(1));
        assert_eq!(terms.every_of(longest), terms.every);
        assert!(terms.request() > Span::seconds(longest / 4));
    }

    #[test]
    fn no_duration_is_long_enough_for_work_that_takes_for_ever_to_stop() {
        let year = 366 * 86_400;
        for stop in [200_000 * year, 200 * year, u64::MAX].map(Duration::from_secs) {
            let stop = Span::from(stop);
            assert_eq!(Terms::shortest(Span::seconds(10), stop), u32::MAX);
            assert_eq!(Terms::shortest_tolerating(u32::MAX, stop), u32::MAX);
            assert_eq!(Terms::tolerating(1, u32::MAX, stop), None);
        }
        let month = Span::seconds(31 * 86_400);
        assert_eq!(Terms::shortest(Span::ZERO, month), 31 * 86_400 / 2 * 3);
    }

    #[test]
    fn renewal_interval_is_at_least_one_second() {
        for (missed, stop) in [(1, 0), (3, 6), (40, 11)] {
            let stop = Span::seconds(stop);
            let shortest = Terms::shortest_tolerating(missed, stop);
            assert!(Terms::tolerating(missed, shortest, stop).is_some());
            assert_eq!(Terms::tolerating(missed, shortest - 1, stop), None);
        }
        assert_eq!(Terms::shortest_tolerating(3, Span::seconds(6)), 10);
        assert_eq!(Terms::tolerating(3, 5, Span::seconds(6)), None);
    }
}
