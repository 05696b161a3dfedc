//! What a client's clocks show.

use super::time::{Now, Span};

/// A point in time of a clock that also runs while the machine is suspended, in microseconds since its own
/// start.
///
/// Only readings of the same machine since the same boot can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(i64);

impl BootInstant {
    /// The reading `micros`.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the clock's start.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The reading `span` later.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_micros()))
    }

    /// The time from `earlier` to this.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span::micros(self.0.saturating_sub(earlier.0))
    }
}

/// What a client's clocks show.
///
/// The boot clock is read first: a process that is stopped between the two reads must not believe for longer
/// than the write allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clocks {
    /// The clock that runs on through suspend.
    pub boot: BootInstant,
    /// The estimate of the server's time.
    pub server: Now,
}
