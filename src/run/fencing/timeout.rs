//! Repeated reads while waiting.

use std::time::Duration;

use tokio::time::Instant;

use super::Site;
use crate::error::Failure;
use crate::text::escape;

/// The time between two reads.
const PERIOD: Duration = Duration::from_secs(1);

/// The remaining time of a wait. Until it is over, reads that fail for a temporary reason are retried.
pub(crate) struct Patience {
    begun: Instant,
    limit: Duration,
    /// The failure that was reported last.
    told: Option<String>,
}

impl Patience {
    pub(crate) fn of(limit: Duration) -> Self {
        Self {
            begun: Instant::now(),
            limit,
            told: None,
        }
    }

    pub(crate) fn rest(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// Waits until the next read.
    ///
    /// # Errors
    /// If it was interrupted.
    pub(crate) async fn pause(&self, site: &Site<'_>) -> Result<(), Failure> {
        let pause = async {
            tokio::time::sleep(PERIOD.min(self.rest())).await;
            Ok(())
        };
        site.or_interrupted(pause).await
    }

    /// The result of `read`, after retries. Each failure is reported once.
    ///
    /// # Errors
    /// That of the read, if it is not temporary or the time is over.
    pub(crate) async fn read<T>(
        &mut self,
        site: &Site<'_>,
        read: impl AsyncFn() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            match read().await {
                Err(failure) if failure.may_pass() && !self.rest().is_zero() => {
                    self.tell(site, &failure);
                    self.pause(site).await?;
                }
                result => return result,
            }
        }
    }

    fn tell(&mut self, site: &Site<'_>, failure: &Failure) {
        let failure = failure.to_string();
        if self.told.as_ref() != Some(&failure) {
            site.session.terminal.warn(format!(
                "could not read node/{}; retrying ({})",
                site.node,
                escape(&failure)
            ));
            self.told = Some(failure);
        }
    }
}
