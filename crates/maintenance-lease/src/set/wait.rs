//! How a set waits: for locks that others hold, and between tries. Nothing is held meanwhile.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::Duration;

use super::driver::Driver;
use super::options::{OnConflict, SetError, SetProgress};
use crate::env::{Env, jitter};
use crate::protocol::BootInstant;
use crate::waiting::{Contender, Progress};

/// How long to wait for an answer after an interrupt or a time limit, and for the answer to a release.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The longest pause before the first try is repeated is twice this; it doubles with each try.
const PAUSE: Duration = Duration::from_millis(500);

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why work was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupted,
    TimedOut,
}

impl<I, P> Driver<'_, I, P>
where
    I: Future<Output = ()>,
    P: FnMut(SetProgress<'_>) + Send,
{
    /// Waits until this place may be tried. Returns whether to go on.
    pub(super) async fn wait_for(&mut self, at: usize) -> bool {
        if let Some(stop) = self.stop {
            self.stopped(at, stop);
            return false;
        }
        let (env, limit) = (self.locks.api.env.clone(), self.limit());
        let (progress, all) = (&mut self.progress, self.targets.len());
        let mut report = |step: Progress<'_>| {
            progress(SetProgress {
                held: 0,
                refused: 0,
                all,
                waiting: Some(step),
            });
        };
        let waiting = self.contenders[at].until_free(&mut report);
        match run_until(self.interrupt.as_mut(), &*env, limit, waiting).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                self.failed.insert(at, error.into());
                false
            }
            Err(stop) => {
                self.stopped(at, stop);
                false
            }
        }
    }

    /// A random pause after a failed try: callers whose sets overlap would refuse each other again. Returns whether to go on.
    pub(super) async fn pause(&mut self) -> bool {
        if self.failed_tries == 0 {
            return true;
        }
        let (env, limit) = (self.locks.api.env.clone(), self.limit());
        let longest = PAUSE.saturating_mul(2_u32.saturating_pow(self.failed_tries));
        let pause = env.sleep(jitter(&*env, longest.min(LONGEST_PAUSE)));
        match run_until(self.interrupt.as_mut(), &*env, limit, pause).await {
            Ok(()) => true,
            Err(stop) => {
                self.stopped(0, stop);
                false
            }
        }
    }

    /// Until when it may wait.
    fn limit(&self) -> Option<BootInstant> {
        let limit = self
            .options
            .limit
            .filter(|_| self.manner == OnConflict::Waiting);
        limit.map(|limit| self.begun.plus(limit.into()))
    }

    /// Until when requests that begin now may take. A limit of zero still tries once.
    pub(super) fn limit_of_requests(&self) -> Option<BootInstant> {
        let shortest = self.locks.api.env.boot().plus(GRACE.into());
        self.limit().map(|limit| limit.max(shortest))
    }

    /// Records that the work on this place was stopped.
    pub(super) fn stopped(&mut self, at: usize, stop: Stop) {
        self.stop = Some(stop);
        let error = match stop {
            Stop::Interrupted => SetError::Interrupted { may_land: false },
            Stop::TimedOut => {
                let contender = self.contenders.get_mut(at);
                let refused = contender.and_then(Contender::obstacle);
                SetError::TimedOut(refused.map(Box::new))
            }
        };
        self.failed.insert(at, error);
    }
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
