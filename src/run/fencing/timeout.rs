//! Repeated reads while waiting.

use std::time::Duration;

use tokio::time::Instant;

use super::target::FencingTarget;
use crate::error::Failure;
use crate::words::fencing::unread;
use crate::words::waiting::with_elapsed;

/// The time between two reads.
const PERIOD: Duration = Duration::from_secs(1);

/// The remaining time of a wait. Until it is over, reads that fail for a temporary reason are retried.
pub(crate) struct Timeout {
    begun: Instant,
    limit: Duration,
    /// The failure that was reported last.
    reported: Option<String>,
}

impl Timeout {
    pub(crate) fn of(limit: Duration) -> Self {
        Self {
            begun: Instant::now(),
            limit,
            reported: None,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// Shows `line` with the time that has passed, and waits until the next read.
    ///
    /// # Errors
    /// If it was interrupted.
    pub(crate) async fn pause_with(
        &self,
        target: &FencingTarget<'_>,
        line: &str,
    ) -> Result<(), Failure> {
        let line = with_elapsed(line, self.elapsed());
        target.terminal().live(&line);
        self.pause(target).await
    }

    /// Waits until the next read.
    ///
    /// # Errors
    /// If it was interrupted.
    pub(crate) async fn pause(&self, target: &FencingTarget<'_>) -> Result<(), Failure> {
        let pause = async {
            tokio::time::sleep(PERIOD.min(self.remaining())).await;
            Ok(())
        };
        target.interrupt.or(pause).await
    }

    /// The result of `read`, after retries. Each failure is reported once.
    ///
    /// # Errors
    /// That of the read, if it is not temporary or the time is over.
    pub(crate) async fn read<T>(
        &mut self,
        target: &FencingTarget<'_>,
        read: impl AsyncFn() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            match read().await {
                Err(failure) if failure.may_pass() && !self.remaining().is_zero() => {
                    self.report(target, &failure);
                    self.pause(target).await?;
                }
                result => return result,
            }
        }
    }

    /// Reports a failed read that is retried, unless it was reported last.
    pub(crate) fn report(&mut self, target: &FencingTarget<'_>, failure: &Failure) {
        let failure = failure.to_string();
        if self.reported.as_ref() != Some(&failure) {
            target.terminal().warn(unread(&target.node, &failure));
            self.reported = Some(failure);
        }
    }
}
