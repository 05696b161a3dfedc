//! Integer time for pure rules: points of server time and the spans between them.

use std::ops::{Add, Sub};
use std::time::Duration;

/// The clock budget of KEP-1411: any two clients' estimates of the server's time, with servers and
/// proxies included, are assumed to differ by less. Nobody else takes a Lease until this long after its
/// end.
pub const SKEW_BUDGET: Span = Span::seconds(3);

/// A length of time in whole microseconds, the precision of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// The shortest length: one microsecond.
    pub const TICK: Self = Self(1);

    /// A span of `seconds`.
    #[must_use]
    pub const fn seconds(seconds: u32) -> Self {
        Self(seconds as i64 * 1_000_000)
    }

    /// A span of `micros` microseconds.
    #[must_use]
    pub const fn micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The span in microseconds; negative if it reaches back.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The span as a time to sleep; zero if it is negative.
    #[must_use]
    pub fn to_duration(self) -> Duration {
        Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }

    /// The span in seconds, rounded up: the shortest whole duration that covers it.
    #[must_use]
    pub const fn ceil_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000) + (self.0.rem_euclid(1_000_000) != 0) as i64
    }
}

impl From<Duration> for Span {
    fn from(length: Duration) -> Self {
        Self(i64::try_from(length.as_micros()).unwrap_or(i64::MAX))
    }
}

/// A point of the API server's time: microseconds since the Unix epoch.
///
/// Arithmetic saturates, to keep an absurd time in a Lease absurd instead of wrapping around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

impl Instant {
    /// A time that is set but can't be read: later than every readable time.
    pub const UNREADABLE: Self = Self(i64::MAX);

    /// The instant `micros` microseconds after the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;

    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Sub for Instant {
    type Output = Span;

    fn sub(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// What is known of the present, in server time: it lies between two instants.
///
/// Expiry is judged by the earliest, to expire nothing too soon; writes carry the latest, for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Now {
    /// The server's time is not before this: the instant to judge expiry by.
    pub earliest: Instant,
    /// The server's time is not after this: the instant to write, if it is [`bounded`](Self::bounded).
    pub latest: Instant,
    /// An answer limits how late it may be. After a pause of the machine there is no limit until the next
    /// answer: nothing that begins or extends a lock may be written before.
    pub bounded: bool,
}

impl Now {
    /// A present that is known exactly.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self::between(instant, instant)
    }

    /// A present between two instants.
    #[must_use]
    pub const fn between(earliest: Instant, latest: Instant) -> Self {
        Self {
            earliest,
            latest,
            bounded: true,
        }
    }

    /// Whether it is known to within the clock budget, which writes that begin or extend a lock require.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        self.bounded && self.latest - self.earliest <= SKEW_BUDGET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!(Span::micros(0).ceil_seconds(), 0);
        assert_eq!(Span::micros(1).ceil_seconds(), 1);
        assert_eq!(Span::micros(1_000_000).ceil_seconds(), 1);
        assert_eq!(Span::micros(1_000_001).ceil_seconds(), 2);
        assert_eq!(Span::micros(-1).ceil_seconds(), 0);
        assert_eq!(Span::micros(-1_000_000).ceil_seconds(), -1);
    }

    #[test]
    fn an_unreadable_time_plus_a_duration_stays_the_latest() {
        assert_eq!(
            Instant::UNREADABLE + Span::seconds(u32::MAX),
            Instant::UNREADABLE
        );
    }
}
