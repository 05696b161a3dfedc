//! What stops the work on a set: an interrupt or a time limit.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::Duration;

use crate::env::Env;
use crate::protocol::BootInstant;

/// How long to wait for an answer after an interrupt or a time limit, and for the answer to a release.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Why work was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupted,
    TimedOut,
}

/// The result of `work`, unless the interrupt comes or the limit passes before.
pub(super) async fn run_until<T, I: Future<Output = ()>>(
    interrupt: Pin<&mut I>,
    env: &dyn Env,
    limit: Option<BootInstant>,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        result = &mut work => Ok(result),
        () = interrupt => Err(Stop::Interrupted),
        () = sleep_until(env, limit) => Err(Stop::TimedOut),
    }
}

/// Completes at this reading of the boot clock; never at `None`.
pub(super) async fn sleep_until(env: &dyn Env, instant: Option<BootInstant>) {
    match instant {
        Some(instant) => env.sleep(instant.since(env.boot()).to_duration()).await,
        None => pending().await,
    }
}
