//! How a set waits: for locks that others hold, and between tries. Nothing is held meanwhile.

use std::time::Duration;

use super::driver::Driver;
use super::options::{OnConflict, SetError, SetProgress};
use super::stop::{GRACE, Stop, run_until};
use crate::env::jitter;
use crate::protocol::BootInstant;
use crate::waiting::{Contender, Progress};

/// The longest pause before the first try is repeated is twice this; it doubles with each try.
const PAUSE: Duration = Duration::from_millis(500);

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
                self.stopped(self.place_to_name(), stop);
                false
            }
        }
    }

    /// The place that a message about a whole set names: the one that was refused last.
    pub(super) fn place_to_name(&self) -> usize {
        self.obstacle.as_ref().map_or(0, |(at, _)| *at)
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
                let last = self.obstacle.take().filter(|(place, _)| *place == at);
                SetError::TimedOut(refused.map(Box::new).or(last.map(|(_, refused)| refused)))
            }
        };
        self.failed.insert(at, error);
    }
}
