//! When a read is retried: if its connection broke, or if the server is too busy.
//!
//! Writes are never retried here: a read must first show whether the write took effect
//! (`protocol/write_loop.rs`). Watches, waits and renewals retry their own reads.

use std::sync::Arc;
use std::time::Duration;

use super::error::ApiError;
use crate::env::{Env, backoff};
use crate::protocol::BootInstant;

/// The most retries of a read after its connection broke.
const AFTER_LOST_CONNECTION: u32 = 5;

/// The most retries of a read if the server is too busy, as in client-go.
const AFTER_THROTTLING: u32 = 10;

/// The longest pause that the server may ask for. If it asks for more, the read is not retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The retries of one read.
pub(super) struct Retries {
    env: Arc<dyn Env>,
    /// Whether the read may be retried.
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
    /// `error`, if the read must not be retried: retries are not allowed, cannot succeed, are used up,
    /// or would exceed the time limit.
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
