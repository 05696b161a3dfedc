//! Measured times, sorted.

use std::fmt::Display;
use std::time::Duration;

/// The measured times, shortest first.
pub(super) struct Quantiles(Vec<Duration>);

impl Quantiles {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The quantile `share` of the times; zero if there are none.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let place = (self.0.len() as f64 * share).ceil() as usize;
        self.0
            .get(place.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn longest(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

/// A time in milliseconds, for people.
pub(super) fn millis(time: Duration) -> impl Display {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let quantiles = Quantiles::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(quantiles.quantile(0.5), Duration::from_millis(100));
        assert_eq!(quantiles.quantile(0.99), Duration::from_millis(198));
        assert_eq!(quantiles.quantile(1.0), quantiles.longest());
        assert_eq!(Quantiles::of(Vec::new()).quantile(0.5), Duration::ZERO);
    }
}
