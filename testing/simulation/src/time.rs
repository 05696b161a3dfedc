//! The true time of a simulated world, which nobody in it can read.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// The Unix time at which every world begins, in microseconds; not on a whole second, as nothing is.
pub const EPOCH: i64 = 1_772_366_400_370_000;

/// A point of true time: microseconds since the world began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// The world's end, and later than all of it.
    pub const NEVER: Self = Self(i64::MAX);

    /// `micros` microseconds after the beginning.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the beginning.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// As people's clocks would show it, were they right.
    #[must_use]
    pub fn on_the_wall(self, ahead: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(EPOCH + self.0 + ahead).unwrap_or_default()
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(length.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl Sub for Time {
    type Output = i64;

    /// Microseconds from one to the other.
    fn sub(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            return f.write_str("never");
        }
        write!(f, "{:>4}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Tells the true time: tokio's, since the world began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrueClock(tokio::time::Instant);

impl TrueClock {
    /// The world begins now.
    pub(crate) fn begins() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// The present.
    pub(crate) fn now(self) -> Time {
        Time(i64::try_from(self.0.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}
