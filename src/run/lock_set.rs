//! Locks nodes as one of the library's sets, and reports the progress.

mod progress;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use maintenance_lease::{Change, SetError, SetOptions, SetProgress, Target};
use tokio::sync::mpsc::unbounded_channel;

use self::progress::{Line, SetUpdate};
use super::interruption::interrupt;
use super::lock_command::LockCommand;
use super::parallel::in_order;
use crate::args::wait::WaitingArgs;
use crate::error::{Failure, Obstacle};

/// The results by node. Nodes that were released again, or never tried, are missing.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) by_node: BTreeMap<String, Result<Change, Failure>>,
    pub(crate) interrupted: bool,
}

impl LockCommand<'_> {
    /// Locks `targets` as a set. Reports what it waits for if `waiting` asks for that.
    pub(crate) async fn lock(
        &self,
        targets: Vec<Target>,
        options: SetOptions,
        waiting: WaitingArgs,
    ) -> Results {
        let locks = &self.session.locks;
        let mut options = options.parallel(self.args.nodes.parallel.into());
        if waiting.wait {
            options = options.wait(waiting.timeout);
        }
        let waits = waiting.wait && waiting.timeout != Some(Duration::ZERO);
        let mut line = Line::new(&self.session, self.verb, waits);
        let (sender, mut reported) = unbounded_channel();
        let report = |progress: SetProgress<'_>| {
            if let Some(reported) = SetUpdate::of(&progress) {
                // The receiver may be gone already.
                let _ = sender.send(reported);
            }
        };
        let mut locking = pin!(locks.lock_all(targets, &options, interrupt(), report));
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
        let waited = waiting.timeout.unwrap_or_default();
        let failed = outcome.failed.into_iter();
        let failed = failed.map(|(node, error)| (node.clone(), Err(failure(node, error, waited))));
        let held = outcome.held.into_iter();
        Results {
            by_node: held
                .map(|(node, change)| (node, Ok(change)))
                .chain(failed)
                .collect(),
            interrupted: outcome.interrupted,
        }
    }

    /// Runs `work` for each of `targets` independently.
    pub(crate) async fn each<F>(&self, targets: Vec<Target>, work: impl Fn(Target) -> F) -> Results
    where
        F: Future<Output = Result<Change, Failure>>,
    {
        let mut results = Results::default();
        results.interrupted = in_order(
            targets,
            self.args.nodes.parallel,
            work,
            |node| self.session.locks.has_open_write(node),
            |node, result| drop(results.by_node.insert(node.to_owned(), result)),
        )
        .await;
        results
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
        SetError::TooSlow(_) => Failure::TooSlow { node },
        SetError::Interrupted { may_land: true } => Failure::InterruptedWrite { node },
        SetError::Interrupted { may_land: false } => Failure::Interrupted,
        SetError::NotReleased { lock_id, cause } => Failure::NotGivenBack {
            node: node.clone(),
            lock_id,
            cause: Box::new(failure(node, *cause, limit)),
        },
    }
}
