//! Locks nodes as one of the library's sets, and reports the progress.

mod progress;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Change, Error, SetError, SetOptions, SetProgress};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use self::progress::{Line, SetUpdate};
use super::change::{ChangeReport, VerbRun};
use super::parallel::{self, Completion, LAST_CHANCE};
use super::targets::Target;
use crate::args::wait::WaitLimit;
use crate::error::{Failure, Obstacle};
use crate::exit::Code;

/// The result for each node, by name.
pub(crate) type Results = BTreeMap<String, Result<Change, Failure>>;

/// What was locked, and the problems with other nodes. Nodes that were released again, or never tried, are
/// missing.
pub(crate) struct LockedSet {
    pub(crate) results: Results,
    pub(crate) completion: Completion,
}

impl LockedSet {
    /// Locks `targets` as a set. Reports what it waits for if `limit` is set.
    pub(crate) async fn set(
        work: &VerbRun<'_>,
        targets: Vec<Target>,
        mut options: SetOptions,
        limit: Option<WaitLimit>,
    ) -> Self {
        let session = &work.session;
        options = options.parallel(work.args.nodes.parallel.into());
        if let Some(WaitLimit(limit)) = limit {
            options = options.wait(limit);
        }
        let waits = limit.is_some_and(|limit| limit.0 != Some(Duration::ZERO));
        let mut line = Line::new(session, work.verb, waits);
        let (sender, mut reported) = unbounded_channel();
        let report = |progress: SetProgress<'_>| {
            if let Some(reported) = SetUpdate::of(&progress) {
                // The receiver may be gone already.
                let _ = sender.send(reported);
            }
        };
        let mut locking = pin!(session.locks.lock_all(
            targets,
            &options,
            parallel::interrupt(),
            report
        ));
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut locking => break outcome,
                Some(reported) = reported.recv() => line.take_in(reported),
                () = line.due() => line.show(),
            }
        };
        while let Ok(reported) = reported.try_recv() {
            line.take_in(reported);
        }
        let limit = limit.and_then(|limit| limit.0).unwrap_or_default();
        let failed = outcome.failed.into_iter().map(|(node, error)| {
            let failure = failure(&node, error, limit);
            (node, Err(failure))
        });
        let held = outcome.held.into_iter();
        Self {
            results: held
                .map(|(node, change)| (node, Ok(change)))
                .chain(failed)
                .collect(),
            completion: match outcome.interrupted {
                true => Completion::Interrupted,
                false => Completion::Complete,
            },
        }
    }

    /// Locks each of `targets` independently.
    pub(crate) async fn each<F>(
        work: &VerbRun<'_>,
        targets: Vec<Target>,
        take: impl Fn(Target) -> F,
    ) -> Self
    where
        F: Future<Output = Result<Change, Failure>>,
    {
        let mut results = Results::new();
        let completion = parallel::in_order(
            targets,
            work.args.nodes.parallel,
            take,
            |node| work.session.locks.has_open_write(node),
            |node, result| {
                results.insert(node.to_owned(), result);
            },
        )
        .await;
        Self {
            results,
            completion,
        }
    }

    /// Adds the results for other nodes.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.results.append(&mut other.results);
        if other.completion == Completion::Interrupted {
            self.completion = other.completion;
        }
    }

    /// Whether nothing went wrong so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.completion == Completion::Complete && self.results.values().all(Result::is_ok)
    }

    /// Releases what was acquired, because something else failed. After Ctrl-C there is a short time limit.
    pub(crate) async fn give_back(&mut self, work: &VerbRun<'_>) {
        let locks = &work.session.locks;
        let is_interrupted = self.completion == Completion::Interrupted;
        let (held, failed): (Results, Results) = std::mem::take(&mut self.results)
            .into_iter()
            .partition(|(_, result)| result.is_ok());
        self.results = failed;
        let giving = held.into_values().flatten().map(|change| async move {
            let giving = locks.release_acquired(&change);
            let given = match is_interrupted {
                true => timeout(LAST_CHANCE, giving).await,
                false => Ok(giving.await),
            };
            let cause = match given {
                Ok(given) => given.err()?.into(),
                Err(_) => Failure::InterruptedWrite {
                    node: change.node.clone(),
                },
            };
            let failure = Failure::NotGivenBack {
                node: change.node.clone(),
                lock_id: change.lock_id(),
                cause: Box::new(cause),
            };
            Some((change.node, failure))
        });
        let giving = futures::stream::iter(giving);
        let mut given = pin!(giving.buffer_unordered(work.args.nodes.parallel.into()));
        while let Some(failure) = given.next().await {
            if let Some((node, failure)) = failure {
                self.results.insert(node, Err(failure));
            }
        }
    }

    /// Reports the results for `nodes`, in this order, and returns the exit code; `single` if one was
    /// named.
    ///
    /// # Errors
    /// If the result can't be printed.
    pub(crate) async fn report(
        mut self,
        mut report: ChangeReport<'_>,
        nodes: Vec<String>,
        single: bool,
    ) -> Result<Code, Failure> {
        if let Some(rest) = self.rest(&nodes) {
            report.retry_for(&rest);
        }
        for node in nodes {
            match self.results.remove(&node) {
                Some(result) => report.add(&node, result),
                None => report.left_alone(node, self.completion),
            }
        }
        if self.completion == Completion::Interrupted {
            report.interrupted();
        }
        report.end(single).await
    }

    /// The nodes that the caller does not hold yet, if they hold some: a hint must not make them wait for
    /// their own locks.
    fn rest(&self, nodes: &[String]) -> Option<Vec<String>> {
        let has = |node: &&String| match self.results.get(*node) {
            Some(Err(Failure::Lock(Error::Refused(refused)))) => {
                matches!(refused.refusal, Refusal::HeldByCaller | Refusal::OwnHold)
            }
            Some(result) => result.is_ok(),
            None => false,
        };
        let is_refused = |node: &&String| {
            let result = self.results.get(*node);
            result.is_none_or(|result| matches!(result, Err(Failure::Lock(Error::Refused(_)))))
        };
        let rest = nodes.iter().filter(|node| !has(node) && is_refused(node));
        nodes
            .iter()
            .any(|node| has(&node))
            .then(|| rest.cloned().collect())
    }
}

/// The failure for people, after a wait of at most `limit`.
fn failure(node: &str, error: SetError, limit: Duration) -> Failure {
    match error {
        SetError::Lock(error) => error.into(),
        SetError::TimedOut(refused) => Failure::TimedOut {
            node: node.to_owned(),
            waited: limit,
            obstacle: refused.map(Obstacle::Refused),
        },
        SetError::TooSlow(_) => Failure::TooSlow {
            node: node.to_owned(),
        },
        SetError::Interrupted { may_land: true } => Failure::InterruptedWrite {
            node: node.to_owned(),
        },
        SetError::Interrupted { may_land: false } => Failure::Interrupted,
        SetError::NotReleased { lock_id, cause } => Failure::NotGivenBack {
            node: node.to_owned(),
            lock_id,
            cause: Box::new(failure(node, *cause, limit)),
        },
    }
}
