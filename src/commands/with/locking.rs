//! Locks the nodes of a command, all or none. Locks that the caller already holds are used only with
//! `--reentry`.

use futures::future::join_all;
use maintenance_lease::protocol::{Refusal, State};
use maintenance_lease::{
    Acquire, Change, Error, HeldLease, Keep, Maintenance, NodeLease, Renew, SetOptions,
};

use super::WithArgs;
use crate::args::nodes::Selection;
use crate::error::Failure;
use crate::run::change::VerbRun;
use crate::run::lock_set::{LockedSet, Results};
use crate::run::parallel::Completion;
use crate::run::problems::Problems;
use crate::run::targets::Target;
use crate::run::variables::is_held_by;

/// The locks of a command, not acquired yet.
pub(super) struct Locking<'a> {
    pub(super) args: &'a WithArgs,
    /// Acquires as this process.
    pub(super) work: &'a VerbRun<'a>,
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
        let targets = self.work.targets(selection, true).await?;
        let nodes = targets.to_names();
        let limit = self.args.limit.limit();
        // If one of them is locked or does not exist, nothing is written to the others.
        let take = self.args.take;
        let (targets, unfinished) = self
            .work
            .read_and_confirm_unfinished(targets, take, false)
            .await?;
        let (own, others): (Vec<_>, Vec<_>) = targets
            .nodes
            .into_iter()
            .partition(|target| self.is_own_lock(target));
        let refused = self.refuse(&own);
        if !refused.is_empty() {
            let completion = Completion::Complete;
            let results = refused;
            return self
                .judge(
                    &nodes,
                    LockedSet {
                        results,
                        completion,
                    },
                )
                .await;
        }
        let options = SetOptions::acquire(take.acquire(self.options(), unfinished));
        let mut locked = LockedSet::set(self.work, others, options, limit).await;
        if locked.is_clean() && !own.is_empty() {
            locked.add(self.enter(own).await);
            if !locked.is_clean() {
                locked.give_back(self.work).await;
            }
        }
        self.judge(&nodes, locked).await
    }

    /// Refuses locks that the caller already holds, unless they asked to work under them: waiting for their
    /// own lock would never end.
    fn refuse(&self, own: &[Target]) -> Results {
        let options = self.options().reentry(self.args.reentry);
        let refused = own.iter().filter_map(|target| {
            let refusal = self.own.check_acquire(target.seen.as_ref()?, &options);
            Some((target.node.clone(), Err(refusal.err()?.into())))
        });
        refused.collect()
    }

    fn options(&self) -> Acquire {
        let options = Acquire::new().duration(self.args.lease_duration);
        match &self.args.message {
            Some(reason) => options.reason(reason),
            None => options,
        }
    }

    /// Whether the caller holds the lock, and not this process: by a lease that has not expired, by a hold,
    /// or by the `with` that this one runs under.
    fn is_own_lock(&self, target: &Target) -> bool {
        let lease = target.seen.as_ref().and_then(|seen| seen.lease.as_ref());
        let now = self.work.session.locks.server_time().now();
        lease.is_some_and(|lease| {
            let is_held = matches!(lease.state(now), State::Held { .. } | State::AdminHold);
            is_held && self.is_callers(lease)
        })
    }

    fn is_callers(&self, lease: &NodeLease) -> bool {
        self.own.is_own(lease) || is_held_by(lease, self.outer)
    }

    /// Continues under locks that the caller holds. They may have expired by now; none is acquired again.
    async fn enter(&self, found: Vec<Target>) -> LockedSet {
        let acquire = self.options().reentry(true);
        let renew = Renew::new().duration(self.args.lease_duration);
        let (own, acquire, renew) = (self.own, &acquire, &renew);
        LockedSet::each(self.work, found, |target| async move {
            let is_hold = |lease: &NodeLease| lease.holder() != Some(own.identity());
            let lease = target.seen.as_ref().and_then(|seen| seen.lease.as_ref());
            Ok(if lease.is_some_and(is_hold) {
                own.try_acquire_seen(&target.node, acquire, target.seen)
                    .await?
            } else {
                own.renew_seen(&target.node, renew, target.seen).await?
            })
        })
        .await
    }

    /// All of them, or a failure after the problems were reported.
    async fn judge(&self, nodes: &[String], mut locked: LockedSet) -> Result<Vec<Change>, Failure> {
        let session = &self.work.session;
        let problems = Problems::changing(session, self.work.verb);
        let mut changes = Vec::new();
        for node in nodes {
            match locked.results.remove(node) {
                Some(Ok(change)) => changes.push(change),
                Some(Err(failure)) => {
                    problems.report(&self.name_own(failure));
                }
                None => {}
            }
        }
        if locked.completion == Completion::Interrupted && !problems.any() {
            problems.report(&Failure::Interrupted);
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
            refused.refusal = match refused.refusal {
                Refusal::Held => Refusal::HeldByCaller,
                Refusal::AdminHold => Refusal::OwnHold,
                other => other,
            };
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
            let lease = change.lease.as_ref();
            let asked = self.args.lease_duration;
            let found = lease.map_or(0, NodeLease::duration_seconds).into();
            // A lock that the caller already held keeps its duration if that is longer.
            let duration = asked.max(std::time::Duration::from_secs(found));
            let duration = duration.min(maintenance_lease::LONGEST_DURATION);
            let keep = keep.clone().duration(duration);
            match self.holder_of(change).keep(change, &keep).await {
                Ok(kept) => held.push(kept),
                Err(error) => {
                    // The first failure says more than a failed release, and the lock expires anyway.
                    let _ = self.give_back(changes).await;
                    return Err(error.into());
                }
            }
        }
        Ok(held)
    }

    /// Releases what this command acquired.
    ///
    /// # Errors
    /// The first failed release. The others are released all the same.
    pub(super) async fn give_back(&self, changes: &[Change]) -> Result<(), Failure> {
        let given = changes.iter().map(async |change| {
            let given = self.holder_of(change).release_acquired(change).await;
            given.map_err(|cause| Failure::NotGivenBack {
                node: change.node.clone(),
                lock_id: change.lock_id(),
                cause: Box::new(cause.into()),
            })
        });
        join_all(given).await.into_iter().collect()
    }

    /// The holder of the lock.
    fn holder_of(&self, change: &Change) -> &Maintenance {
        let process = &self.work.session.locks;
        let holder = change.lease.as_ref().and_then(NodeLease::holder);
        match holder == Some(process.identity()) {
            true => process,
            false => self.own,
        }
    }
}
