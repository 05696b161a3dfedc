//! Follows one Lease each: the first few with a watch of their own, all others with a shared watch.
//!
//! A program that keeps one lock reads only this lock. A program that keeps a thousand must not open a
//! thousand connections. It must not use up the streams of one connection either (100 by default),
//! because its renewals would then wait for a watch to end.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::future::{AbortHandle, abortable};
use futures::stream::{self, BoxStream};
use tokio::sync::watch;

use super::kind::Leases;
use super::{LeaseEvent, Step, WatchEvent, Watcher};
use crate::cluster::api::Api;
use crate::outcome::Error;

/// So many watch their Lease alone before the others share a watch.
const ALONE: usize = 8;

/// So many Leases that nobody follows are remembered by the shared watch, for those who begin to follow
/// one of them shortly after they wrote to it.
const SPARE: usize = 1024;

/// Everybody who follows a Lease with one handle. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Followers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// From which version on those who watch alone do.
    alone: Vec<u64>,
    shared: Option<Shared>,
}

struct Shared {
    /// Everything after this version was reported, or will be.
    since: u64,
    known: BTreeMap<String, watch::Sender<LastKnown>>,
    followers: usize,
    task: AbortHandle,
}

impl Shared {
    fn new(since: u64, task: AbortHandle) -> Self {
        Self {
            since,
            known: BTreeMap::new(),
            followers: 0,
            task,
        }
    }

    /// Forgets the reports about Leases that nobody follows, if there are too many.
    fn forget_others(&mut self) {
        if self.known.len() <= self.followers + SPARE {
            return;
        }
        self.known.retain(|_, known| {
            let is_followed = known.receiver_count() > 0;
            if !is_followed {
                self.since = self.since.max(known.borrow().at);
            }
            is_followed
        });
    }

    /// Goes on with a watch from an earlier version on.
    fn restart(&mut self, since: u64, task: AbortHandle) {
        self.since = since;
        std::mem::replace(&mut self.task, task).abort();
    }
}

/// The last that is known of a Lease.
#[derive(Clone, Default)]
struct LastKnown {
    at: u64,
    event: Option<LeaseEvent>,
}

enum Source {
    Alone(Left),
    Shared(watch::Receiver<LastKnown>, Left),
}

/// Gives a follower's place back.
struct Left {
    followers: Followers,
    /// The version from which it watched alone.
    alone: Option<u64>,
}

impl Followers {
    /// What happens to a node's Lease after the version `from`. If several changes come in quick
    /// succession, only the last may be reported.
    ///
    /// # Caveats
    /// The shared watch covers all Leases. If the user may watch only Leases of certain names, those who
    /// share it get no events.
    pub(crate) fn follow(
        &self,
        api: &Api,
        node: &str,
        from: u64,
    ) -> BoxStream<'static, Result<LeaseEvent, Error>> {
        match self.join(api, node, from) {
            Source::Alone(place) => with_place(api.watch_leases(Some(node), Some(from)), place),
            Source::Shared(known, place) => with_place(newer(known, from), place),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many Leases the shared watch remembers.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.lock()
            .shared
            .as_ref()
            .map_or(0, |shared| shared.known.len())
    }

    fn join(&self, api: &Api, node: &str, from: u64) -> Source {
        let state = &mut *self.lock();
        let left = |alone| Left {
            followers: self.clone(),
            alone,
        };
        if state.alone.len() < ALONE {
            state.alone.push(from);
            return Source::Alone(left(Some(from)));
        }
        let shared = state.shared.get_or_insert_with(|| {
            // Early enough for most of those who come soon and acquired before this one.
            let since = state.alone.iter().copied().fold(from, u64::min);
            Shared::new(since, self.share(api, since))
        });
        if from < shared.since {
            // Changes in between were not reported to anybody. Duplicate reports count once.
            shared.restart(from, self.share(api, from));
        }
        shared.followers += 1;
        let mut known = shared.known.entry(node.to_owned()).or_default().subscribe();
        known.mark_changed();
        Source::Shared(known, left(None))
    }

    /// Passes on what happens to all Leases after the version `since`.
    fn share(&self, api: &Api, since: u64) -> AbortHandle {
        let leases = Leases::new(api.repository.clone(), None);
        let mut watcher = Watcher::new(api, leases, Some(since));
        let followers = self.clone();
        let (telling, task) = abortable(async move {
            loop {
                // After an error it tries again by itself; renewals tell what it can't.
                if let Step::Told(event) = watcher.next().await {
                    followers.publish(event, watcher.version);
                }
            }
        });
        api.env.spawn(Box::pin(async move {
            // Aborted when its last follower left.
            let _ = telling.await;
        }));
        task
    }

    /// Passes on what the shared watch told at `version`.
    fn publish(&self, event: LeaseEvent, version: u64) {
        let state = &mut *self.lock();
        let Some(shared) = &mut state.shared else {
            return;
        };
        match event {
            WatchEvent::Changed(ref lease) | WatchEvent::Deleted(ref lease) => {
                let (node, at) = (lease.node().to_owned(), lease.version.0);
                publish(shared.known.entry(node).or_default(), at, event);
                shared.forget_others();
            }
            WatchEvent::Listed(mut all) => {
                shared.since = version;
                shared.known.retain(|_, known| known.receiver_count() > 0);
                for (node, known) in &shared.known {
                    match all.remove(node) {
                        Some(lease) => publish(known, lease.version.0, WatchEvent::Changed(lease)),
                        None => publish(known, version, WatchEvent::Listed(HashMap::new())),
                    }
                }
            }
        }
    }
}

fn publish(known: &watch::Sender<LastKnown>, at: u64, event: LeaseEvent) {
    known.send_if_modified(|known| {
        let newer = at > known.at;
        if newer {
            let event = Some(event);
            *known = LastKnown { at, event };
        }
        newer
    });
}

/// The report about a Lease that is newer than `from`.
fn newer(
    known: watch::Receiver<LastKnown>,
    from: u64,
) -> BoxStream<'static, Result<LeaseEvent, Error>> {
    stream::unfold(known, move |mut known| async move {
        loop {
            if known.changed().await.is_err() {
                return pending().await;
            }
            let LastKnown { at, event } = known.borrow_and_update().clone();
            if let Some(event) = event.filter(|_| at > from) {
                return Some((Ok(event), known));
            }
        }
    })
    .boxed()
}

/// The stream. Dropping it frees its slot.
fn with_place<T: Send + 'static>(
    events: BoxStream<'static, T>,
    place: Left,
) -> BoxStream<'static, T> {
    stream::unfold((events, place), async |(mut events, place)| {
        let event = events.next().await?;
        Some((event, (events, place)))
    })
    .boxed()
}

impl Drop for Left {
    fn drop(&mut self) {
        let state = &mut *self.followers.lock();
        if let Some(from) = self.alone {
            if let Some(place) = state.alone.iter().position(|&other| other == from) {
                state.alone.swap_remove(place);
            }
        } else if let Some(shared) = &mut state.shared {
            shared.followers -= 1;
            if shared.followers == 0 {
                shared.task.abort();
                state.shared = None;
            }
        }
    }
}
