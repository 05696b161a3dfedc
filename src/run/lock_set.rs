//! Locks nodes as one of the library's sets, and reports the progress.

mod progress;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::future::OptionFuture;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Change, Error, Maintenance, SetError, SetOptions, SetProgress, Target};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

use self::progress::{Line, SetUpdate};
use super::interruption::interrupt;
use super::lock_command::LockCommand;
use super::session::SLOW;
use super::targets::names;
use super::wait_event::WaitNotice;
use crate::args::wait::WaitingArgs;
use crate::error::{Failure, Obstacle, Verb};
use crate::words::change;

/// The results by node. Nodes that were released again, or never tried, are missing.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) by_node: BTreeMap<String, Result<Change, Failure>>,
    pub(crate) interrupted: bool,
}

impl Results {
    /// Those of `nodes` that the same command can lock later: they exist, and the caller does not have them yet.
    /// `None` if it is all of them.
    pub(crate) fn to_retry(&self, nodes: &[String], verb: Verb) -> Option<Vec<String>> {
        let can_be_locked = |node: &&String| match self.by_node.get(*node) {
            None => true,
            Some(Err(Failure::Lock(Error::Refused(refused)))) => match refused.refusal {
                // `with` may enter them.
                Refusal::HeldByCaller | Refusal::OwnHold => verb == Verb::With,
                refusal => !matches!(refusal, Refusal::Foreign | Refusal::Elected),
            },
            Some(Err(Failure::TimedOut { .. } | Failure::Lock(Error::NamespaceMissing(_)))) => true,
            Some(_) => false,
        };
        let rest: Vec<String> = nodes.iter().filter(can_be_locked).cloned().collect();
        (!rest.is_empty() && rest.len() < nodes.len()).then_some(rest)
    }
}

impl LockCommand<'_> {
    /// Locks `targets` as a set. Reports what it waits for if `waiting` asks for that.
    ///
    /// # Errors
    /// As [`without_namespace`](Self::without_namespace).
    pub(crate) async fn lock(
        &self,
        targets: Vec<Target>,
        mut options: SetOptions,
        waiting: WaitingArgs,
    ) -> Result<Results, Failure> {
        let locks = &self.session.locks;
        if waiting.wait {
            options = options.wait(waiting.timeout);
        }
        let waits = waiting.wait && waiting.timeout != Some(Duration::ZERO);
        let waited = waiting.timeout.unwrap_or_default();
        let nodes = names(&targets);
        let mut results = Results::default();
        let mut next = Some(targets);
        while let Some(targets) = next {
            let mut line = Line::new(&self.session, self.verb, waits);
            let mut notice = WaitNotice::default();
            let (sender, mut reported) = unbounded_channel();
            let report = |progress: SetProgress<'_>| {
                if let Some(reported) = SetUpdate::of(&progress) {
                    // The receiver may be gone already.
                    let _ = sender.send(reported);
                }
            };
            let mut locking = pin!(locks.lock_all(targets, &options, interrupt(), report));
            // With --wait, another line already says what it waits for.
            let silence = || OptionFuture::from((!waits).then(|| sleep(SLOW)));
            let mut slow = pin!(silence());
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut locking => break outcome,
                    Some(reported) = reported.recv() => {
                        slow.set(silence());
                        if let SetUpdate::Blocked(blocked) = &reported
                            && waits
                        {
                            notice.waits(&self.session, blocked);
                        }
                        line.apply(reported);
                    }
                    Some(()) = &mut slow => {
                        self.session.say_slow();
                        slow.set(None.into());
                    }
                    () = line.due() => line.show(),
                }
            };
            while let Ok(reported) = reported.try_recv() {
                line.apply(reported);
            }
            let failed = outcome.failed.into_iter();
            let failed =
                failed.map(|(node, error)| (node.clone(), Err(failure(node, error, waited))));
            let held = outcome.held.into_iter();
            let held = held.map(|(node, change)| (node, Ok(change)));
            results.by_node.extend(held.chain(failed));
            results.interrupted = outcome.interrupted;
            drop((line, notice));
            let now = locks.server_time().now();
            for (node, change) in &outcome.replaced {
                let is_held = matches!(results.by_node.get(node), Some(Ok(_)));
                if let Some(replaced) = change::replaced(change, is_held, now) {
                    self.session.terminal.warn(replaced);
                }
            }
            next = self.without_namespace(&nodes, &results).await?;
        }
        Ok(results)
    }

    /// If the namespace is missing, asks on a terminal whether to create it. Returns the nodes to try again.
    ///
    /// # Errors
    /// If the answer is not yes. That was reported.
    async fn without_namespace(
        &self,
        nodes: &[String],
        results: &Results,
    ) -> Result<Option<Vec<Target>>, Failure> {
        let is_missing = |result: &Result<_, _>| {
            matches!(result, Err(Failure::Lock(Error::NamespaceMissing(_))))
        };
        let is_missing = results.by_node.values().any(is_missing);
        if !is_missing || results.interrupted || self.is_dry_run() || !self.can_ask() {
            return Ok(None);
        }
        self.confirm_namespace(nodes).await?;
        self.session.locks.set_creates_namespace(true);
        let failed = |node: &&String| !matches!(results.by_node.get(*node), Some(Ok(_)));
        let failed = nodes.iter().filter(failed).cloned().map(Target::from);
        Ok(Some(failed.collect()))
    }
}

/// Releases a lock that this command acquired, within `limit`.
///
/// # Errors
/// If that fails, or is not known by then.
pub(crate) async fn release_acquired(
    locks: &Maintenance,
    change: &Change,
    limit: Duration,
) -> Result<(), Failure> {
    let cause = match timeout(limit, locks.release_acquired(change)).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.into(),
        Err(_) => Failure::InterruptedWrite {
            node: change.node.clone(),
        },
    };
    Err(not_released(change, cause))
}

fn not_released(change: &Change, cause: Failure) -> Failure {
    Failure::ReleaseFailed {
        node: change.node.clone(),
        lock_id: change.lock_id(),
        until: change.until(),
        cause: Box::new(cause),
    }
}

/// The failure for people, after a wait of at most `limit`.
fn failure(node: String, error: SetError, limit: Duration) -> Failure {
    match error {
        SetError::Lock(error) => error.into(),
        SetError::TimedOut(refused) => Failure::TimedOut {
            node,
            waited: limit,
            obstacle: refused.map(Obstacle::Refused),
        },
        SetError::Interrupted { may_land: true } => Failure::InterruptedWrite { node },
        SetError::Interrupted { may_land: false } => Failure::Interrupted,
        SetError::NotReleased { change, cause } => not_released(&change, (*cause).into()),
    }
}
