//! Requests for several locks in parallel, until they are done or interrupted.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::env::Env;

/// How long to wait for another caller that may release a lock soon.
pub(super) const CONFLICT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for an answer after an interrupt or a time limit.
pub(super) const GRACE_AFTER_INTERRUPT: Duration = Duration::from_secs(2);

/// The caller's request to stop, which comes at most once.
pub(super) struct Interrupt<'a, I> {
    future: Pin<&'a mut I>,
    env: Arc<dyn Env>,
    is_interrupted: bool,
    /// The time limit has passed: requests from now on have no more time than after an interrupt.
    pub(super) is_late: bool,
}

impl<'a, I: Future<Output = ()>> Interrupt<'a, I> {
    pub(super) fn new(future: Pin<&'a mut I>, env: Arc<dyn Env>) -> Self {
        Self {
            future,
            env,
            is_interrupted: false,
            is_late: false,
        }
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Completes when it comes for the first time.
    pub(super) async fn interrupted(&mut self) {
        if self.is_interrupted {
            return pending().await;
        }
        self.future.as_mut().await;
        self.is_interrupted = true;
    }
}

/// Runs `work` for each of `places`, up to `parallel` at a time. `report` gets each result and returns
/// whether to start another.
///
/// After an interrupt no other is started, unless `all`. If no result comes for [`GRACE_AFTER_INTERRUPT`] after an
/// interrupt or the time limit,
/// those that were started are reported as `None`; if `all`, so are the rest.
pub(super) async fn run_parallel<T, I, F>(
    places: impl IntoIterator<Item = usize>,
    parallel: usize,
    all: bool,
    interrupt: &mut Interrupt<'_, I>,
    mut work: impl FnMut(usize) -> F,
    mut report: impl FnMut(usize, Option<T>) -> bool,
) where
    I: Future<Output = ()>,
    F: Future<Output = T>,
{
    let mut places = places.into_iter();
    let mut running = FuturesUnordered::new();
    let mut begun = BTreeSet::new();
    let mut goes_on = true;
    loop {
        while goes_on
            && (all || !interrupt.is_interrupted())
            && running.len() < parallel
            && let Some(place) = places.next()
        {
            begun.insert(place);
            let work = work(place);
            running.push(async move { (place, work.await) });
        }
        let is_over = interrupt.is_interrupted() || interrupt.is_late;
        let env = interrupt.env.clone();
        tokio::select! {
            biased;
            next = running.next() => match next {
                Some((place, result)) => {
                    begun.remove(&place);
                    goes_on &= report(place, Some(result));
                }
                None => return,
            },
            () = interrupt.interrupted() => {}
            () = env.sleep(GRACE_AFTER_INTERRUPT), if is_over => {
                begun.extend(places.filter(|_| all));
                for place in begun {
                    report(place, None);
                }
                return;
            }
        }
    }
}
