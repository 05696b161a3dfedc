//! Waiting for locks: of one node after another in the order of their names, so that callers who
//! overlap never wait for each other; those that are taken are kept meanwhile.

mod line;

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select_all;
use maintenance_lease::{
    Acquire, ApiError, Blocked, Change, Error, HeldLease, Hold, Keep, Lost, Progress, Seen, Subject,
};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep_until, timeout};

use self::line::{Line, Told};
use super::many::{LAST_CHANCE, interrupt};
use super::taking::give_back;
use super::targets::Target;
use crate::cli::patience::Patience;
use crate::failure::{Failure, Obstacle};
use crate::report::verb::Verb;
use crate::report::waiting::Queue;
use crate::session::Session;

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal<'a> {
    Acquire(&'a Acquire),
    Hold(&'a Hold),
}

/// A lock that was waited for, and is kept since.
pub(crate) struct Taken {
    pub(crate) change: Change,
    pub(crate) held: HeldLease,
}

/// What came of waiting for several nodes.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What was taken on the way, also where the others failed: it is the caller's to give back.
    pub(crate) taken: Vec<Taken>,
    /// What ended it early, by node.
    pub(crate) failures: Vec<(String, Failure)>,
}

impl Outcome {
    /// Whether Ctrl-C ended it.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.failures.iter().any(|(_, failure)| {
            matches!(
                failure,
                Failure::Interrupted | Failure::InterruptedWrite { .. }
            )
        })
    }
}

/// A caller who waits.
pub(crate) struct Waiting<'a> {
    session: &'a Session<'a>,
    verb: Verb,
    goal: Goal<'a>,
    patience: Patience,
    begun: Instant,
    /// How what was taken is kept.
    keep: Keep,
    /// Somebody had to be waited for: what was read before is old.
    has_waited: bool,
    interrupted: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

/// Why it waits no longer, where it has no lock.
enum Stop {
    Interrupted,
    TimedOut,
    /// Another of its locks is gone.
    Lost(Arc<Lost>),
}

impl<'a> Waiting<'a> {
    /// Begins now. From here on Ctrl-C is heard, and ends the process only the second time.
    pub(crate) fn new(
        session: &'a Session<'a>,
        verb: Verb,
        goal: Goal<'a>,
        patience: Patience,
        keep: Keep,
    ) -> Self {
        Self {
            session,
            verb,
            goal,
            patience,
            begun: Instant::now(),
            keep,
            has_waited: false,
            interrupted: Box::pin(interrupt()),
        }
    }

    /// Takes `targets`, all or none: the first failure ends it. What was read of them already is
    /// not read again, until somebody had to be waited for.
    pub(crate) async fn in_turn(&mut self, mut targets: Vec<Target>) -> Outcome {
        targets.sort_by(|one, other| one.node.cmp(&other.node));
        let all = targets.len();
        let mut outcome = Outcome::default();
        for Target { node, seen } in targets {
            let taken = outcome.taken.len();
            let seen = seen.filter(|_| !self.has_waited);
            let queue = Queue { taken, all };
            let (change, failures) = self.one(&node, seen, queue, &outcome.taken).await;
            outcome.failures = failures;
            if let Some(change) = change {
                match self.session.locks.keep(&change, &self.keep) {
                    Ok(held) => outcome.taken.push(Taken { change, held }),
                    Err(error) => {
                        let given_back = give_back(&self.session.locks, &change).await;
                        let cause = given_back.err().unwrap_or(error);
                        outcome.failures.push((node, cause.into()));
                    }
                }
            }
            if !outcome.failures.is_empty() {
                break;
            }
        }
        outcome
    }

    /// Waits for `node`. There may be a change *and* a failure: a lock that came too late.
    async fn one(
        &mut self,
        node: &str,
        seen: Option<Seen>,
        queue: Queue,
        taken: &[Taken],
    ) -> (Option<Change>, Vec<(String, Failure)>) {
        let locks = &self.session.locks;
        let waits = self.patience.0 != Some(Duration::ZERO);
        let mut line = Line::new(self.session, self.verb, queue, waits);
        let (sender, mut told) = unbounded_channel();
        let tell = move |progress: Progress<'_>| {
            if let Some(told) = Told::of(&progress) {
                // Who waits no longer needs no telling.
                let _ = sender.send(told);
            }
        };
        let mut work = match self.goal {
            Goal::Acquire(options) => locks
                .acquire_when_free_seen(node, options, seen, tell)
                .boxed(),
            Goal::Hold(options) => locks.hold_when_free_seen(node, options, seen, tell).boxed(),
        };
        let mut lost = pin!(first_loss(taken));
        let begun = Instant::now();
        let stop = loop {
            // Who can't wait looks once all the same.
            let first_look = begun + LAST_CHANCE;
            let end = self.patience.0.map(|limit| match line.blocked() {
                Some(_) => self.begun + limit,
                None => (self.begun + limit).max(first_look),
            });
            tokio::select! {
                biased;
                result = &mut work => {
                    return match result {
                        Ok(change) => (Some(change), Vec::new()),
                        Err(error) => (None, vec![(node.to_owned(), error.into())]),
                    };
                }
                () = &mut self.interrupted => break Stop::Interrupted,
                lost = &mut lost => break Stop::Lost(lost),
                Some(told) = told.recv() => {
                    self.has_waited = true;
                    line.take_in(told);
                }
                () = at(end) => break Stop::TimedOut,
                () = line.due() => line.show(),
            }
        };
        // What is under way gets a moment to come out.
        let late = match locks.has_open_write(node) {
            true => timeout(LAST_CHANCE, work).await.ok().and_then(Result::ok),
            false => None,
        };
        let mut failures = Vec::new();
        let mut fail = |node: &str, failure| failures.push((node.to_owned(), failure));
        match (stop, late.is_none() && locks.has_open_write(node)) {
            (Stop::Interrupted, true) => fail(
                node,
                Failure::InterruptedWrite {
                    node: node.to_owned(),
                },
            ),
            (Stop::Interrupted, false) => fail(node, Failure::Interrupted),
            (Stop::TimedOut, true) => fail(node, self.unknown(node)),
            (Stop::TimedOut, false) if late.is_some() => {}
            (Stop::TimedOut, false) => fail(node, self.timed_out(node, line.blocked())),
            (Stop::Lost(lost), may_land) => {
                if may_land {
                    fail(node, self.unknown(node));
                }
                fail(&lost.node, Error::Lost(lost.clone()).into());
            }
        }
        (late, failures)
    }

    fn timed_out(&self, node: &str, blocked: Option<&Blocked>) -> Failure {
        Failure::TimedOut {
            node: node.to_owned(),
            waited: self.patience.0.unwrap_or_default(),
            obstacle: blocked.map(|blocked| Obstacle::Refused(Box::new(blocked.refused.clone()))),
        }
    }

    fn unknown(&self, node: &str) -> Failure {
        Failure::Lock(Error::Unknown {
            subject: Subject::Node,
            node: node.to_owned(),
            intent: self.verb.participle(),
            source: ApiError::TimedOut(self.begun.elapsed()),
        })
    }
}

/// Completes when one of these is lost.
async fn first_loss(taken: &[Taken]) -> Arc<Lost> {
    if taken.is_empty() {
        return pending().await;
    }
    let losses = taken.iter().map(|taken| taken.held.expiry().boxed());
    select_all(losses).await.0
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}
