//! Releases what a set acquired.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use super::driver::{Answer, Driver, Request};
use super::options::{SetError, SetProgress};
use super::stop::GRACE;
use crate::cluster::error::ApiError;
use crate::outcome::{Change, Done, Error};

impl<'a, I, P> Driver<'a, I, P>
where
    I: Future<Output = ()>,
    P: FnMut(SetProgress<'_>) + Send,
{
    /// Releases what this call acquired at these places. Returns whether all is released.
    pub(super) async fn give_back(&mut self, is_meant: impl Fn(usize) -> bool) -> bool {
        let locks = self.locks;
        let taken = std::mem::take(&mut self.taken.places);
        let (meant, others): (BTreeMap<usize, Change>, BTreeMap<_, _>) =
            taken.into_iter().partition(|(at, _)| is_meant(*at));
        self.taken.places = others;
        let (given, kept): (BTreeMap<usize, Change>, BTreeMap<_, _>) = meant
            .into_iter()
            .partition(|(_, change)| locks.is_new(change));
        // A lock that was renewed is as it was found. One that became a hold stays.
        let became_holds = kept.into_iter().filter(|(_, it)| it.done == Done::Acquired);
        self.taken.places.extend(became_holds);
        self.releasing = given;
        // A release without an answer is settled by another one, which reads whether the first took effect.
        for _ in 0..2 {
            let mut requests: Vec<Request<'a>> = Vec::new();
            for (&at, change) in &self.releasing {
                let change = change.clone();
                let releasing = async move { locks.release_acquired(&change).await };
                requests.push((at, releasing.map(Answer::Released).boxed()));
            }
            if !requests.is_empty() {
                self.send(requests).await;
            }
        }
        for (at, change) in std::mem::take(&mut self.releasing) {
            let source = ApiError::TimedOut(GRACE);
            let cause = match self.may_land(at) {
                true => self.unknown(at, "released", source),
                false => Error::Api(source),
            };
            self.not_released(at, change, cause);
        }
        !self.failed.values().any(is_not_released)
    }

    pub(super) fn not_released(&mut self, at: usize, change: Change, cause: Error) {
        let (change, cause) = (Box::new(change), Box::new(cause));
        let error = SetError::NotReleased { change, cause };
        self.failed.insert(at, error);
    }

    /// Releases what was acquired without an answer, as far as that is done within two seconds, and records where a write may
    /// still take effect.
    pub(super) async fn settle_unanswered(&mut self) {
        let failed = self
            .failed
            .iter()
            .filter(|(_, error)| !is_not_released(error));
        let open: Vec<usize> = failed
            .map(|(&at, _)| at)
            .filter(|&at| self.may_land(at))
            .collect();
        let (locks, since) = (self.locks, self.writes_before);
        let mut releases = Vec::new();
        for &at in &open {
            let node = self.targets[at].node.clone();
            let release = async move { locks.release_unanswered(&node, since).await.is_ok() };
            releases.push(release.boxed());
        }
        let released = stream::iter(releases)
            .buffer_unordered(self.options.parallel)
            .take_until(locks.api.env.sleep(GRACE));
        released.collect::<Vec<bool>>().await;
        for at in open {
            let may_land = self.may_land(at);
            if let Some(error) = self.failed.remove(&at) {
                let error = self.settled(at, error, may_land);
                self.failed.insert(at, error);
            }
        }
    }

    /// `error`, once it is known whether a write may still take effect.
    fn settled(&self, at: usize, error: SetError, may_land: bool) -> SetError {
        match error {
            SetError::Interrupted { .. } => SetError::Interrupted { may_land },
            SetError::TimedOut(_) if may_land => {
                let waited = self.locks.api.env.boot().since(self.begun).to_duration();
                let source = ApiError::TimedOut(waited);
                self.unknown(at, self.options.intent(), source).into()
            }
            SetError::Lock(Error::Unknown { source, .. }) if !may_land => {
                SetError::Lock(Error::Api(source))
            }
            error => error,
        }
    }

    fn unknown(&self, at: usize, intent: &'static str, source: ApiError) -> Error {
        Error::Unknown {
            subject: self.locks.repository().subject(),
            node: self.targets[at].node.clone(),
            intent,
            source,
        }
    }

    /// Whether a write of this call about this place may still take effect.
    fn may_land(&self, at: usize) -> bool {
        let open_writes = &self.locks.api.open_writes;
        open_writes.has_since(&self.targets[at].node, self.writes_before)
    }
}

fn is_not_released(error: &SetError) -> bool {
    matches!(error, SetError::NotReleased { .. })
}
