//! Waiting for one lock of a set, while the others are kept or while nothing is held.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{Either, select};

use super::actions::Driver;
use super::held_locks::Lock;
use super::options::{SetError, SetProgress};
use super::order::{Event, Obstacle, OnConflict};
use super::parallel::{CONFLICT_TIMEOUT, GRACE_AFTER_INTERRUPT};
use crate::cluster::error::ApiError;
use crate::env::{Env, backoff};
use crate::keeper::{Keep, Lost};
use crate::outcome::{Change, Error};
use crate::protocol::{BootInstant, Refusal};
use crate::waiting::{Blocked, Progress};

/// The pause before a set is tried again, in the steps of [`backoff`]: half a second to a second.
const JITTER: u32 = 6;

/// What ended a wait.
enum Stop {
    /// Acquired; `None`: it is free.
    Over(Box<Result<Option<Change>, Error>>),
    Interrupted,
    TimedOut,
    /// The other locks must not be held any longer.
    Yield,
    Lost(usize, Arc<Lost>),
}

impl<I, P> Driver<'_, I, P>
where
    I: Future<Output = ()>,
    P: FnMut(SetProgress<'_>) + Send,
{
    /// Waits until a place is free and, if `takes`, acquires it.
    pub(super) async fn wait_for(&mut self, at: usize, takes: bool) -> Event {
        if self.interrupt.is_interrupted() {
            self.failed.insert(at, self.interrupted(at));
            return Event::Stopped;
        }
        self.failed.clear();
        let (locks, options) = (self.locks, self.options);
        let env = locks.api.env.clone();
        let waits = self.manner == OnConflict::Waiting;
        let owns = self.taken.is_any_new();
        let (node, seen) = (self.targets[at].node.clone(), self.take_seen(at));
        let (held, all) = (self.taken.places.len(), self.targets.len());
        let begun = env.boot();
        let limit = match waits {
            true => options.limit.map(|limit| self.begun.plus(limit.into())),
            false => Some(
                *self
                    .time_limit_ends
                    .get_or_insert(begun.plus(CONFLICT_TIMEOUT.into())),
            ),
        };
        let keeps_until =
            (waits && owns).then(|| self.held_since.plus(options.longest_wait().into()));

        let blocked = Mutex::new(None::<Blocked>);
        let seen_blocked = || blocked.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = &mut self.progress;
        let report = |step: Progress<'_>| {
            let mut is_reported = waits;
            if let Progress::Blocked(now) = &step {
                is_reported &= !(owns && lasts(now));
                *seen_blocked() = Some((*now).clone());
            }
            if is_reported {
                progress(SetProgress {
                    held,
                    refused: 0,
                    all,
                    waiting: Some(step),
                });
            }
        };
        let mut work = async {
            match takes {
                true => locks
                    .contend(&node, options.goal(), seen, report)
                    .await
                    .map(Some),
                false => {
                    locks.until_free(&node, options.goal(), report).await?;
                    env.sleep(backoff(&*env, JITTER)).await;
                    Ok(None)
                }
            }
        }
        .boxed();
        let mut loss = None;
        let taken = &self.taken;
        let working = poll_fn(|context| {
            if let Poll::Ready(result) = work.poll_unpin(context) {
                return Poll::Ready(Stop::Over(Box::new(result)));
            }
            let loss = loss.get_or_insert_with(|| taken.first_loss());
            if let Poll::Ready((at, lost)) = loss.poll_unpin(context) {
                return Poll::Ready(Stop::Lost(at, lost));
            }
            let Some(is_lasting) = seen_blocked().as_ref().map(lasts) else {
                return Poll::Pending;
            };
            if limit.is_some_and(|end| end <= env.boot()) {
                return Poll::Ready(Stop::TimedOut);
            }
            if owns && is_lasting {
                return Poll::Ready(Stop::Yield);
            }
            Poll::Pending
        });
        let turn_ends = async {
            sleep_until(&*env, keeps_until).await;
            // Others wait for what it has only while something is in its way.
            while seen_blocked().is_none() {
                env.sleep(GRACE_AFTER_INTERRUPT).await;
            }
        };
        let time_limit = async {
            sleep_until(&*env, limit).await;
            // A limit of zero still tries once.
            if seen_blocked().is_none() {
                sleep_until(&*env, Some(begun.plus(GRACE_AFTER_INTERRUPT.into()))).await;
            }
        };
        let stop = tokio::select! {
            biased;
            stop = working => stop,
            () = self.interrupt.interrupted() => Stop::Interrupted,
            () = time_limit => Stop::TimedOut,
            () = turn_ends => Stop::Yield,
        };
        drop(loss);
        let late = match &stop {
            // A write that is under way gets a moment to finish.
            stop if !matches!(stop, Stop::Over(_)) && locks.has_open_write(&node) => {
                match select(work, env.sleep(GRACE_AFTER_INTERRUPT)).await {
                    Either::Left((Ok(change), _)) => change,
                    _ => None,
                }
            }
            _ => {
                drop(work);
                None
            }
        };
        let may_land = late.is_none()
            && self.may_land(at)
            && self.release_unreported(vec![at]).await.is_empty();
        // The time for a conflict is not the caller's limit: releases have all the time of a request after it.
        if waits && matches!(stop, Stop::TimedOut) {
            self.interrupt.is_late = true;
        }
        let refused = seen_blocked()
            .take()
            .map(|blocked| Box::new(blocked.refused));
        if refused.is_some() {
            // What was read before the wait is outdated.
            self.targets
                .iter_mut()
                .for_each(|target| target.seen = None);
        }
        let error = match (stop, late) {
            (Stop::Over(result), _) => match *result {
                Ok(Some(change)) => return self.acquired(at, change).await,
                Ok(None) => return Event::Free,
                Err(error) => error.into(),
            },
            (Stop::TimedOut | Stop::Yield, Some(change)) => return self.acquired(at, change).await,
            (Stop::Interrupted, late) => {
                self.taken.extend(at, late);
                self.failed.insert(at, SetError::Interrupted { may_land });
                return Event::Stopped;
            }
            (Stop::Lost(lost_at, lost), late) => {
                self.taken.extend(at, late);
                if may_land {
                    self.failed.insert(at, self.unknown(at));
                }
                self.taken.places.remove(&lost_at);
                self.failed.insert(lost_at, Error::Lost(lost).into());
                return Event::Stopped;
            }
            (Stop::TimedOut | Stop::Yield, None) if may_land => self.unknown(at),
            (Stop::Yield, None) if waits => return Event::Refused(at, Obstacle::LongHold),
            (Stop::TimedOut | Stop::Yield, None) if waits => SetError::TimedOut(refused),
            (Stop::TimedOut | Stop::Yield, None) => match refused {
                Some(refused) => Error::Refused(refused).into(),
                None => Error::Api(ApiError::TimedOut(CONFLICT_TIMEOUT)).into(),
            },
        };
        self.failed.insert(at, error);
        Event::Refused(at, Obstacle::Permanent)
    }

    /// Records an acquired lock, and renews it while others are waited for.
    async fn acquired(&mut self, at: usize, change: Change) -> Event {
        if !self.taken.is_any_new() {
            self.held_since = self.locks.api.env.boot();
        }
        (self.progress)(SetProgress {
            held: self.taken.places.len() + 1,
            refused: 0,
            all: self.targets.len(),
            waiting: None,
        });
        let is_last = at + 1 == self.targets.len();
        if self.manner == OnConflict::Waiting && !is_last {
            // No work runs yet that needs time to stop.
            let keep = Keep::new().stop(Duration::ZERO);
            let kept = tokio::select! {
                biased;
                kept = self.locks.keep(&change, &keep) => kept,
                () = self.interrupt.interrupted() => {
                    self.taken.insert(at, change);
                    let may_land = false;
                    self.failed.insert(at, SetError::Interrupted { may_land });
                    return Event::Stopped;
                }
            };
            match kept {
                Ok(kept) => {
                    let kept = Some(kept);
                    self.taken.places.insert(at, Lock { change, kept });
                    return Event::Acquired;
                }
                Err(error) => {
                    self.taken.insert(at, change);
                    self.failed.insert(at, error.into());
                    return Event::Refused(at, Obstacle::Permanent);
                }
            }
        }
        self.taken.insert(at, change);
        Event::Acquired
    }

    fn unknown(&self, at: usize) -> SetError {
        let waited = self.locks.api.env.boot().since(self.begun).to_duration();
        SetError::Lock(Error::Unknown {
            subject: self.locks.repository().subject(),
            node: self.targets[at].node.clone(),
            intent: self.options.intent(),
            source: ApiError::TimedOut(waited),
        })
    }
}

/// Whether it does not end by itself.
fn lasts(blocked: &Blocked) -> bool {
    matches!(
        blocked.refused.refusal,
        Refusal::AdminHold | Refusal::OwnHold
    )
}

/// Completes at this reading of the boot clock; never at `None`.
async fn sleep_until(env: &dyn Env, instant: Option<BootInstant>) {
    match instant {
        Some(instant) => env.sleep(instant.since(env.boot()).to_duration()).await,
        None => pending().await,
    }
}
