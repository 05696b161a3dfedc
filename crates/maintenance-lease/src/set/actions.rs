//! Carries out the actions that the order of a set asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use super::held_locks::{HeldLocks, has_little_time, verify_lock};
use super::options::{SetError, SetOptions, SetOutcome, SetProgress, Target};
use super::order::{Event, Obstacle, OnConflict};
use super::parallel::{CONFLICT_TIMEOUT, GRACE_AFTER_INTERRUPT, Interrupt, run_parallel};
use crate::bugs::{self, Bug};
use crate::cluster::change::DryRun;
use crate::cluster::error::ApiError;
use crate::cluster::reads::{NodeAndLease, NodeLookup};
use crate::maintenance::Maintenance;
use crate::outcome::{Change, Done, Error, Refused};
use crate::protocol::{BootInstant, Instant, Refusal, SKEW_BUDGET};
use crate::waiting::OLDEST_NODE;

/// Why places of a set are not locked.
type Failed = BTreeMap<usize, SetError>;

/// A set being locked. `I` completes to interrupt it, `P` is called with its progress.
pub(super) struct Driver<'a, I, P> {
    pub(super) locks: &'a Maintenance,
    /// How to lock the nodes. If this may wait, earlier locks of the caller keep their reasons and tickets until all nodes are
    /// locked.
    pub(super) options: &'a SetOptions,
    /// What to write to earlier locks once all nodes are locked.
    deferred: Option<&'a SetOptions>,
    /// Earlier locks of which a deferred write has begun.
    rewritten: BTreeSet<usize>,
    /// How many writes other calls had begun before.
    writes_before: u64,
    pub(super) manner: OnConflict,
    pub(super) targets: Vec<Target>,
    pub(super) taken: HeldLocks,
    pub(super) failed: Failed,
    pub(super) interrupt: Interrupt<'a, I>,
    pub(super) progress: P,
    pub(super) begun: BootInstant,
    /// How many pauses of the machine had been suspected then.
    suspected_pauses: u64,
    /// When the first lock of this round was acquired.
    pub(super) held_since: BootInstant,
    /// When to stop waiting for a caller that may release a lock soon.
    pub(super) time_limit_ends: Option<BootInstant>,
}

impl<'a, I, P> Driver<'a, I, P>
where
    I: Future<Output = ()>,
    P: FnMut(SetProgress<'_>) + Send,
{
    pub(super) fn new(
        locks: &'a Maintenance,
        mut targets: Vec<Target>,
        options: &'a SetOptions,
        keeping_details: &'a SetOptions,
        interrupt: Interrupt<'a, I>,
        progress: P,
    ) -> Self {
        if !bugs::active(Bug::SetOrderNotKept) {
            targets.sort_by(|one, other| one.node.cmp(&other.node));
            targets.dedup_by(|one, other| one.node == other.node);
        }
        let manner = match options.manner {
            OnConflict::Waiting if locks.dry_run != DryRun::None => OnConflict::AtOnce,
            manner => manner,
        };
        let begun = locks.api.env.boot();
        let defers = manner == OnConflict::Waiting
            && targets.len() > 1
            && !bugs::active(Bug::DetailsWrittenAtOnce);
        let writes_deferred = defers && !bugs::active(Bug::DetailsNeverWritten);
        Self {
            locks,
            options: if defers { keeping_details } else { options },
            deferred: writes_deferred.then_some(options),
            rewritten: BTreeSet::new(),
            writes_before: locks.api.open_writes.count(),
            manner,
            targets,
            taken: HeldLocks {
                locks: locks.clone(),
                places: BTreeMap::new(),
            },
            failed: BTreeMap::new(),
            interrupt,
            progress,
            begun,
            suspected_pauses: locks.api.time.suspected_pauses(),
            held_since: begun,
            time_limit_ends: None,
        }
    }

    /// The result, after the last action.
    pub(super) fn outcome(mut self, is_done: bool) -> SetOutcome {
        let held = std::mem::take(&mut self.taken.places).into_iter();
        let name = |at: usize| self.targets[at].node.clone();
        SetOutcome {
            held: held
                .map(|(at, lock)| (name(at), lock.into_change()))
                .filter(|(_, change)| is_done || change.done == Done::Acquired)
                .collect(),
            failed: std::mem::take(&mut self.failed)
                .into_iter()
                .map(|(at, error)| (name(at), error))
                .collect(),
            interrupted: self.interrupt.is_interrupted(),
            rewritten: match is_done {
                true => BTreeSet::new(),
                false => self.rewritten.iter().copied().map(name).collect(),
            },
        }
    }

    /// What was read of a place before this call, unless it may be outdated.
    pub(super) fn take_seen(&mut self, at: usize) -> Option<NodeAndLease> {
        let api = &self.locks.api;
        let is_recent = api.env.boot().since(self.begun) <= OLDEST_NODE
            && api.time.suspected_pauses() == self.suspected_pauses;
        self.targets[at].seen.take().filter(|_| is_recent)
    }

    /// Checks what was read before: if one node would be refused, nothing is written.
    pub(super) fn check_first(&mut self) -> Event {
        for (at, target) in self.targets.iter().enumerate() {
            let Some(seen) = &target.seen else {
                continue;
            };
            let checked = match (self.manner, &seen.row) {
                (OnConflict::Partial, _) => Ok(()),
                // Waiting does not create a Node.
                (OnConflict::Waiting, NodeLookup::Missing) => {
                    Err(Error::NodeNotFound(target.node.clone()))
                }
                (OnConflict::Waiting, _) => Ok(()),
                (OnConflict::AtOnce, _) => self.options.check(self.locks, seen),
            };
            if let Err(error) = checked {
                self.failed.insert(at, error.into());
            }
        }
        match self.failed.is_empty() {
            true => Event::Begun,
            false => Event::Stopped,
        }
    }

    /// Tries these places. Unless partial, the first refusal ends it.
    pub(super) async fn acquire(&mut self, from: usize, to: usize) -> Event {
        let is_partial = self.manner == OnConflict::Partial;
        let Self {
            locks,
            options,
            targets,
            taken,
            failed,
            progress,
            ..
        } = self;
        let (locks, options, all) = (*locks, *options, targets.len());
        let mut cut = Vec::new();
        run_parallel(
            from..to,
            options.parallel,
            false,
            &mut self.interrupt,
            |at| {
                let (node, seen) = (targets[at].node.clone(), targets[at].seen.take());
                async move {
                    locks
                        .carry_out(&node, options.plan(locks, &node)?, seen)
                        .await
                }
            },
            |at, result| {
                match result {
                    Some(Ok(change)) => taken.insert(at, change),
                    Some(Err(error)) => drop(failed.insert(at, error.into())),
                    None => cut.push(at),
                }
                progress(SetProgress {
                    held: taken.places.len(),
                    refused: refused(failed),
                    all,
                    waiting: None,
                });
                is_partial || failed.is_empty()
            },
        )
        .await;
        for at in cut {
            let error = self.interrupted(at);
            self.failed.insert(at, error);
        }
        if self.interrupt.is_interrupted() {
            return Event::Stopped;
        }
        let now = locks.server_time().now().earliest;
        let may_pass = |error: &SetError| matches!(error, SetError::Lock(Error::Refused(refused)) if may_pass(refused, now));
        match self.failed.keys().next() {
            Some(&at) if !is_partial && self.failed.values().all(may_pass) => {
                Event::Refused(at, Obstacle::Conflict)
            }
            Some(&at) if !is_partial => Event::Refused(at, Obstacle::Permanent),
            _ => Event::Acquired,
        }
    }

    /// Releases what this call acquired at `from` and after it.
    pub(super) async fn release(&mut self, from: usize) -> Event {
        self.release_if(|at, _| at >= from).await
    }

    /// Releases what this call acquired at these places.
    async fn release_if(&mut self, is_meant: impl Fn(usize, &Failed) -> bool) -> Event {
        let locks = self.locks;
        let mut given = BTreeMap::new();
        for (&at, lock) in &mut self.taken.places {
            if is_meant(at, &self.failed) {
                lock.settle();
                if locks.is_new(&lock.change) {
                    given.insert(at, lock.change.clone());
                }
            }
        }
        let Self {
            targets,
            taken,
            failed,
            progress,
            ..
        } = self;
        let (given, all) = (&given, targets.len());
        let not_released = |at: usize, cause| SetError::NotReleased {
            lock_id: given[&at].lock_id(),
            cause: Box::new(cause),
        };
        let mut unanswered = Vec::new();
        let mut is_complete = true;
        run_parallel(
            given.keys().copied(),
            self.options.parallel,
            true,
            &mut self.interrupt,
            |at| locks.release_acquired(&given[&at]),
            |at, result| {
                taken.places.remove(&at);
                is_complete &= matches!(result, Some(Ok(())));
                match result {
                    Some(Ok(())) => {
                        if let Some(error) = failed.remove(&at) {
                            failed.insert(at, error.settled());
                        }
                    }
                    Some(Err(error)) => drop(failed.insert(at, not_released(at, error.into()))),
                    None => unanswered.push(at),
                }
                progress(SetProgress {
                    held: taken.places.len(),
                    refused: refused(failed),
                    all,
                    waiting: None,
                });
                true
            },
        )
        .await;
        for at in unanswered {
            let source = ApiError::TimedOut(GRACE_AFTER_INTERRUPT);
            let cause = match self.interrupt.is_interrupted() {
                true => self.interrupted(at),
                false if self.may_land(at) => SetError::Lock(Error::Unknown {
                    subject: locks.repository().subject(),
                    node: self.targets[at].node.clone(),
                    intent: "released",
                    source,
                }),
                false => Error::Api(source).into(),
            };
            self.failed.insert(at, not_released(at, cause));
        }
        match is_complete {
            true => Event::Released,
            false => Event::Stopped,
        }
    }

    /// One bounded attempt to release what was acquired without an answer.
    pub(super) async fn release_unanswered(&mut self) {
        let is_open = |&at: &usize| self.may_land(at);
        let open: Vec<usize> = self.failed.keys().copied().filter(is_open).collect();
        for at in self.release_unreported(open).await {
            let error = self.failed.remove(&at).map(SetError::settled);
            self.failed.extend(error.map(|error| (at, error)));
        }
    }

    /// Releases what was acquired at these places without an answer, as far as that is done within
    /// [`GRACE_AFTER_INTERRUPT`]. Returns where nothing can take effect any more.
    pub(super) async fn release_unreported(&mut self, places: Vec<usize>) -> Vec<usize> {
        // A shared reference to the whole driver would need an interrupt that is `Sync`.
        let (locks, targets, since) = (self.locks, &self.targets, self.writes_before);
        let withdrawing = stream::iter(places).map(|at| {
            let release_unreported = locks.release_unanswered(&targets[at].node, since);
            release_unreported.map(move |ended| ended.is_ok().then_some(at))
        });
        let settled = withdrawing
            .buffer_unordered(self.options.parallel)
            .take_until(locks.api.env.sleep(GRACE_AFTER_INTERRUPT));
        let settled: Vec<Option<usize>> = settled.collect().await;
        let settled = settled.into_iter().flatten();
        settled.filter(|&at| !self.may_land(at)).collect()
    }

    /// Checks the locks of a call that waited, and renews those with little time left.
    pub(super) async fn check(&mut self) -> Event {
        let mut checks_all = self.manner == OnConflict::Waiting && self.targets.len() > 1;
        let env = self.locks.api.env.clone();
        let ends = env.boot().plus(self.options.longest_wait().into());
        loop {
            let due = self.due(checks_all);
            // What is deferred is written once all others are checked, and then they are checked again.
            let deferred = match due.is_empty() {
                true => self.deferred.take(),
                false => None,
            };
            let changes = match deferred {
                Some(_) => self.earlier_locks(),
                None if due.is_empty() => return Event::Checked,
                None => due,
            };
            let left = ends.since(env.boot()).to_duration();
            let locks = self.locks;
            let work = async {
                match deferred {
                    Some(options) => {
                        let rewrite = |earlier| rewrite(locks, options, earlier);
                        self.confirm_locks(&changes, true, rewrite).await;
                    }
                    None => {
                        let verify = |change| verify_lock(locks, change);
                        self.confirm_locks(&changes, false, verify).await;
                    }
                }
            };
            let is_checked = tokio::select! {
                biased;
                () = env.sleep(left) => false,
                () = work => true,
            };
            if !is_checked {
                let length = self.options.longest_wait();
                let unwritten = changes.into_keys().filter(|_| deferred.is_some());
                for at in self.due(checks_all).into_keys().chain(unwritten) {
                    self.failed.entry(at).or_insert(SetError::TooSlow(length));
                }
            }
            let is_partial = self.manner == OnConflict::Partial;
            if self.interrupt.is_interrupted() || !(is_partial || self.failed.is_empty()) {
                return Event::Stopped;
            }
            // A lock is either held or failed; one from before this call stays as found.
            self.release_if(|at, failed| failed.contains_key(&at)).await;
            let failed = &self.failed;
            self.taken.places.retain(|at, _| !failed.contains_key(at));
            // Checking takes time: what was checked first may have little left by now.
            checks_all = false;
        }
    }

    /// The locks that the caller had before.
    fn earlier_locks(&mut self) -> BTreeMap<usize, Change> {
        let mut earlier = BTreeMap::new();
        for (&at, lock) in &mut self.taken.places {
            if lock.change.done == Done::Renewed {
                lock.settle();
                earlier.insert(at, lock.change.clone());
            }
        }
        earlier
    }

    /// The locks to check: all, or those with little time left or in doubt.
    fn due(&mut self, all: bool) -> BTreeMap<usize, Change> {
        let (now, suspected_pauses) = (
            self.locks.api.env.boot(),
            self.locks.api.time.suspected_pauses(),
        );
        let mut due = BTreeMap::new();
        for (&at, lock) in &mut self.taken.places {
            lock.settle();
            let change = &lock.change;
            if all || has_little_time(change, now) || change.suspected_pauses != suspected_pauses {
                due.insert(at, change.clone());
            }
        }
        due
    }

    /// Runs `work` for each of these locks, in parallel. If `work` rewrites locks, the first failure ends it. If it only checks
    /// them, all are checked.
    async fn confirm_locks<'c, F>(
        &mut self,
        changes: &'c BTreeMap<usize, Change>,
        rewrites: bool,
        work: impl Fn(&'c Change) -> F,
    ) where
        F: Future<Output = Result<Change, Error>>,
    {
        let (taken, failed) = (&mut self.taken, &mut self.failed);
        let begun = &mut self.rewritten;
        let mut cut = Vec::new();
        run_parallel(
            changes.keys().copied(),
            self.options.parallel,
            false,
            &mut self.interrupt,
            |at| {
                begun.extend(rewrites.then_some(at));
                work(&changes[&at])
            },
            |at, result| {
                match result {
                    Some(Ok(change)) => taken.insert(at, change),
                    // It belongs to somebody else now: do not release it.
                    Some(Err(Error::Refused(refused))) => {
                        taken.places.remove(&at);
                        failed.insert(at, Error::Lost(Arc::new((*refused).into())).into());
                    }
                    Some(Err(error)) => drop(failed.insert(at, error.into())),
                    None => cut.push(at),
                }
                !rewrites || failed.is_empty()
            },
        )
        .await;
        // Nothing was written about a lock that was lost before.
        let is_lost = |at: &usize| {
            let error = self.failed.get(at);
            matches!(error, Some(SetError::Lock(Error::Lost(_))))
        };
        self.rewritten.retain(|at| !is_lost(at));
        for at in cut {
            self.failed.insert(at, self.interrupted(at));
        }
    }

    pub(super) fn interrupted(&self, at: usize) -> SetError {
        SetError::Interrupted {
            may_land: self.may_land(at),
        }
    }

    /// Whether a write of this call about this place may still take effect.
    pub(super) fn may_land(&self, at: usize) -> bool {
        let open_writes = &self.locks.api.open_writes;
        open_writes.has_since(&self.targets[at].node, self.writes_before)
    }
}

/// Writes what `options` say about the lock in `earlier`, which the caller had before.
async fn rewrite(
    locks: &Maintenance,
    options: &SetOptions,
    earlier: &Change,
) -> Result<Change, Error> {
    let node = &earlier.node;
    let seen = NodeAndLease::without_row(node, earlier.lease.clone());
    let mut plan = options.plan(locks, node)?;
    let lease = earlier.lease.as_ref();
    plan.named_acquisition = lease.and_then(|lease| lease.reduced(&mut plan.names).acquisition());
    let change = locks.carry_out(node, plan, Some(seen)).await?;
    if change.lock_id() != earlier.lock_id() {
        // It ended just before, so this began another one.
        locks.release_acquired(&change).await?;
        return Err(Error::Refused(Box::new(Refused {
            subject: locks.repository().subject(),
            node: node.clone(),
            refusal: Refusal::NotHeld,
            lease: change.before,
            state: change.state_before,
        })));
    }
    Ok(Change {
        lease: change.lease,
        deadline: change.deadline,
        suspected_pauses: change.suspected_pauses,
        ..earlier.clone()
    })
}

/// How many were refused or failed by themselves.
fn refused(failed: &Failed) -> usize {
    let by_itself = |error: &&SetError| !matches!(error, SetError::Interrupted { .. });
    failed.values().filter(by_itself).count()
}

/// Whether the lock was acquired a moment ago: a caller that conflicts with this one may release it. A
/// lock that was held for longer, or a hold, stays.
fn may_pass(refused: &Refused, now: Instant) -> bool {
    let acquired = refused.lease.as_ref().and_then(|lease| lease.acquired);
    matches!(refused.refusal, Refusal::Held | Refusal::HeldByCaller)
        && acquired.is_some_and(|acquired| acquired + CONFLICT_TIMEOUT.into() + SKEW_BUDGET >= now)
}
