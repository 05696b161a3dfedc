//! Locks the nodes of a command, all or none. Locks that the caller already holds are used only with
//! `--reentry`.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::{
    Acquire, Change, Error, HeldLease, Keep, Maintenance, NodeAndLease, NodeLease, SetOptions,
};

use super::args::WithArgs;
use crate::args::nodes::Selection;
use crate::error::Failure;
use crate::run::interruption::LAST_CHANCE;
use crate::run::lock_command::LockCommand;
use crate::run::lock_set::{Results, release_acquired};
use crate::run::parallel::in_order;
use crate::run::problems::Problems;
use crate::run::targets::{Target, names};
use crate::run::variables::is_held_by;

/// The locks of a command, not acquired yet.
pub(super) struct Locking<'a> {
    pub(super) args: &'a WithArgs,
    /// Acquires as this process.
    pub(super) command: &'a LockCommand<'a>,
    /// The caller's own identity, for locks that the caller already holds.
    pub(super) own: &'a Maintenance,
    /// The holder of the `with` that this one runs under, if any.
    pub(super) outer: Option<&'a str>,
}

impl Locking<'_> {
    /// Locks all nodes and returns them in their order.
    ///
    /// # Errors
    /// If one can't be locked. That was reported, and what was acquired is released.
    pub(super) async fn all(&self, selection: &Selection) -> Result<Vec<Change>, Failure> {
        let (args, command) = (self.args, self.command);
        let targets = command.targets(selection, true).await?;
        let nodes = names(&targets);
        // If one of them is locked or does not exist, nothing is written to the others.
        let (targets, unfinished) = command
            .confirm_unfinished(targets, args.take, false)
            .await?;
        let (own, others): (Vec<_>, Vec<_>) = targets
            .into_iter()
            .partition(|target| self.is_own_lock(target));
        let mut results = self.refuse(&own);
        if results.by_node.is_empty() {
            let options = args.protect.acquire(self.options());
            let options = SetOptions::acquire(args.take.acquire(options, unfinished));
            results = command.lock(others, options, args.limit).await?;
            if is_clean(&results) && !own.is_empty() {
                let entered = self.enter(own).await;
                results.by_node.extend(entered.by_node);
                results.interrupted |= entered.interrupted;
            }
        }
        self.judge(&nodes, results).await
    }

    /// Refuses locks that the caller already holds, unless they asked to work under them: waiting for their
    /// own lock would never end.
    fn refuse(&self, own: &[Target]) -> Results {
        let options = self.options().reentry(self.args.reentry);
        let refused = own.iter().filter_map(|target| {
            let refusal = self.own.check_acquire(target.seen.as_ref()?, &options);
            Some((target.node.clone(), Err(refusal.err()?.into())))
        });
        Results {
            by_node: refused.collect(),
            interrupted: false,
        }
    }

    fn options(&self) -> Acquire {
        let options = Acquire::new().duration(self.args.lease_duration);
        self.args.why.acquire(options)
    }

    /// Whether the caller holds the lock, and not this process: by a lease that has not expired, by a hold,
    /// or by the `with` that this one runs under.
    fn is_own_lock(&self, target: &Target) -> bool {
        let lease = target.seen.as_ref().and_then(|seen| seen.lease.as_ref());
        let now = self.own.server_time().now();
        lease.is_some_and(|lease| lease.state(now).is_locked() && self.is_callers(lease))
    }

    fn is_callers(&self, lease: &NodeLease) -> bool {
        self.own.is_own(lease) || is_held_by(lease, self.outer)
    }

    /// Renews locks that the caller holds, with the given reason and protection, or continues under their holds.
    async fn enter(&self, found: Vec<Target>) -> Results {
        let mut results = Results::default();
        let options = self.args.protect.acquire(self.options());
        let options = self.args.take.acquire(options.reentry(true), Vec::new());
        let (own, options) = (self.own, &options);
        // What was read before a wait may be hours old, and nothing is written under the caller's own hold.
        let waits = self.args.limit.wait;
        let is_usable = move |seen: &NodeAndLease| {
            !waits && !seen.lease.as_ref().is_some_and(NodeLease::is_hold)
        };
        let enter = |target: Target| async move {
            let seen = target.seen.filter(is_usable);
            Ok(own.try_acquire(Target { seen, ..target }, options).await?)
        };
        results.interrupted = in_order(
            found,
            self.command.node_progress(),
            enter,
            |node| own.has_open_write(node),
            |node, result| drop(results.by_node.insert(node.to_owned(), result)),
        )
        .await;
        results
    }

    /// All of them, or a failure after the problems were reported and what was acquired is released.
    async fn judge(&self, nodes: &[String], mut results: Results) -> Result<Vec<Change>, Failure> {
        let session = &self.command.session;
        if !is_clean(&results) {
            self.release_acquired(&mut results).await;
        }
        let mut problems = Problems::changing(session, self.command.verb);
        if let Some(nodes) = results.to_retry(nodes, self.command.verb) {
            problems.retry_for(&nodes);
        }
        let mut changes = Vec::new();
        for node in nodes {
            match results.by_node.remove(node) {
                Some(Ok(change)) => changes.push(change),
                Some(Err(failure)) => {
                    problems.report(&self.name_own(failure));
                }
                None => {}
            }
        }
        if results.interrupted && !problems.any() {
            problems.report(&Failure::Interrupted);
            session.terminal.remark(self.command.verb.nothing_done());
        }
        if problems.any() {
            return Err(problems.end_as_failure().await);
        }
        session.warn_of_clocks();
        Ok(changes)
    }

    /// Distinguishes the caller's own lock from somebody else's in the failure.
    fn name_own(&self, mut failure: Failure) -> Failure {
        if let Failure::Lock(Error::Refused(refused)) = &mut failure
            && let Some(lease) = &refused.lease
            && self.is_callers(lease)
        {
            refused.refusal = refused.refusal.of_own();
        }
        failure
    }

    /// Starts to renew the locks.
    ///
    /// # Errors
    /// If one can't be renewed. Then what was acquired is released.
    pub(super) async fn keep(&self, changes: &[Change]) -> Result<Vec<HeldLease>, Failure> {
        let keep = Keep::new().stop(self.args.stop());
        let mut held = Vec::new();
        for change in changes {
            match self.holder_of(change).keep(change, &keep).await {
                Ok(kept) => held.push(kept),
                Err(error) => {
                    // The first failure says more than a failed release, and the lock expires anyway.
                    let _ = self.release(changes, None).await;
                    return Err(error.into());
                }
            }
        }
        Ok(held)
    }

    /// Releases what this command acquired, because something else failed. After Ctrl-C there is a short
    /// time limit.
    async fn release_acquired(&self, results: &mut Results) {
        let limit = results.interrupted.then_some(LAST_CHANCE);
        let (acquired, failed): (BTreeMap<_, _>, _) = std::mem::take(&mut results.by_node)
            .into_iter()
            .partition(|(_, result)| result.is_ok());
        results.by_node = failed;
        let acquired: Vec<Change> = acquired.into_values().flatten().collect();
        for (change, failure) in acquired
            .iter()
            .zip(self.release_all(&acquired, limit).await)
        {
            if let Some(failure) = failure {
                results.by_node.insert(change.node.clone(), Err(failure));
            }
        }
    }

    /// Releases what this command acquired, within `limit`.
    ///
    /// # Errors
    /// The first failed release. The others are released all the same.
    pub(super) async fn release(
        &self,
        changes: &[Change],
        limit: Option<Duration>,
    ) -> Result<(), Failure> {
        let failures = self.release_all(changes, limit).await;
        failures.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// Releases the locks that were acquired with `changes`, and returns why that failed, for each.
    async fn release_all(
        &self,
        changes: &[Change],
        limit: Option<Duration>,
    ) -> Vec<Option<Failure>> {
        let limit = limit.unwrap_or(Duration::MAX);
        let releasing = changes.iter().map(async |change| {
            let released = release_acquired(self.holder_of(change), change, limit);
            released.await.err()
        });
        join_all(releasing).await
    }

    /// The holder of the lock.
    fn holder_of(&self, change: &Change) -> &Maintenance {
        let process = &self.command.session.locks;
        let holder = change.lease.as_ref().and_then(NodeLease::holder);
        match holder == Some(process.identity()) {
            true => process,
            false => self.own,
        }
    }
}

/// Whether nothing went wrong so far.
fn is_clean(results: &Results) -> bool {
    !results.interrupted && results.by_node.values().all(Result::is_ok)
}
