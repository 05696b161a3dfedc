//! When a read is sent again: if its connection broke, or if the server had no time for it.
//!
//! Writes are never sent again here: whether a write took effect is found out by reading
//! (`protocol/write_loop.rs`). Nor are the reads of watches, waiters and keepers, which have a pace of their own.

use std::sync::Arc;
use std::time::Duration;

use super::error::ApiError;
use crate::env::{Env, backoff};
use crate::protocol::BootInstant;

/// How often a read is sent again after its connection broke.
const AFTER_LOST_CONNECTION: u32 = 5;

/// How often a read is sent again when the server asks for patience: as often as client-go does.
const AFTER_THROTTLING: u32 = 10;

/// The longest time that the server may ask to wait. Whoever asks for more gets no second request.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The retries of one read.
pub(super) struct Retries {
    env: Arc<dyn Env>,
    /// Whether there are any.
    allowed: bool,
    begun: BootInstant,
    /// The time for all attempts together; `None`: no limit.
    limit: Option<Duration>,
    sent_again: u32,
}

impl Retries {
    pub(super) fn new(env: Arc<dyn Env>, limit: Option<Duration>, allowed: bool) -> Self {
        Self {
            allowed,
            begun: env.boot(),
            env,
            limit,
            sent_again: 0,
        }
    }

    /// Waits until the request may be sent again after `error`.
    ///
    /// # Errors
    /// `error`, if it is not sent again: no retry is allowed, none can succeed, it was sent often enough, or the
    /// time would be over first.
    pub(super) async fn wait(&mut self, error: ApiError) -> Result<(), ApiError> {
        match self.pause(&error) {
            Some(pause) => {
                self.sent_again += 1;
                self.env.sleep(pause).await;
                Ok(())
            }
            None => Err(error),
        }
    }

    fn pause(&self, error: &ApiError) -> Option<Duration> {
        let requested = error.status().and_then(|status| status.retry_after);
        let most = match error {
            _ if error.is_connection_lost() => AFTER_LOST_CONNECTION,
            _ if error.is_throttled() => AFTER_THROTTLING,
            ApiError::Status(status) if status.code >= 500 && requested.is_some() => {
                AFTER_THROTTLING
            }
            _ => return None,
        };
        if !self.allowed || self.sent_again >= most {
            return None;
        }
        let requested = Duration::from_secs(requested.unwrap_or_default());
        let pause = requested.max(backoff(&*self.env, self.sent_again));
        let passed = self.env.boot().since(self.begun).to_duration();
        let left = self.limit.map(|limit| limit.saturating_sub(passed));
        let in_time = left.is_none_or(|left| pause < left);
        (requested <= LONGEST_PAUSE && in_time).then_some(pause)
    }
}
