//! The hold of a fencing during `unfence`: whose it is, whether it may be ended, and its end.

use maintenance_lease::{Acquire, NodeAndLease, NodeLease};
use pod_safety::fencing::steps::Lock;
use pod_safety::fencing::{Record, is_of_fencing};

use super::steps::UnfenceRun;
use crate::error::{Failure, LockAfter};
use crate::run::fencing::Observed;
use crate::words::fencing::{Question, hold_left, hold_lost, taken_by};
use crate::words::holder_name::person;

impl UnfenceRun<'_> {
    /// The hold of the fencing, with any holder.
    pub(super) fn hold_of_fencing<'l>(&self, observed: &'l Observed) -> Option<&'l NodeLease> {
        let lease = observed.lease.as_ref()?;
        let id = lease.lock_id().map(|id| id.to_string());
        let record = observed.evidence.state.record.as_ref();
        let is_recorded = record.is_some_and(|record| record.hold.is_some() && record.hold == id);
        (is_recorded || is_of_fencing(lease, self.target.now())).then_some(lease)
    }

    /// Refuses if the node is fenced, and somebody else holds the lock by something else than the hold of its fencing.
    pub(super) fn check_lock(&self, observed: &Observed) -> Result<(), Failure> {
        let target = self.target;
        let id = |lease: Option<&NodeLease>| lease.and_then(NodeLease::lock_id);
        let hold = id(self.hold.as_ref());
        let is_held = hold.is_some() && hold == id(observed.lease.as_ref());
        let is_open = !is_held && self.evidence(observed).is_fenced();
        if !is_open || target.lock(observed.lease.as_ref()) == Lock::Callers {
            return Ok(());
        }
        let seen = NodeAndLease::without_row(&target.node, observed.lease.clone());
        Ok(target.locks().check_acquire(&seen, &Acquire::new())?)
    }

    /// Asks before somebody else's fencing is undone, or their hold is ended. Returns whether a confirmation was needed.
    pub(super) async fn confirm(&self, record: Option<&Record>) -> Result<bool, Failure> {
        let target = self.target;
        let (locks, hold) = (target.locks(), self.hold.as_ref());
        let is_own = hold.is_none_or(|hold| locks.is_own(hold))
            && record.is_none_or(|record| record.who == locks.identity());
        if is_own || target.is_dry_run() {
            return Ok(false);
        }
        let place = target.session.place();
        let question = Question::to_unfence(&place, &target.node, hold, record, target.now());
        self.ask(&question).await?;
        Ok(true)
    }

    /// Asks before a hold without a record is ended, even the caller's own: it may be left from a crash, or
    /// belong to a `fence` that still runs.
    pub(super) async fn confirm_unfinished(&self, hold: &NodeLease) -> Result<(), Failure> {
        let target = self.target;
        if target.is_dry_run() {
            return Ok(());
        }
        let place = target.session.place();
        self.ask(&Question::to_end_hold(&place, hold, target.now()))
            .await
    }

    async fn ask(&self, question: &Question) -> Result<(), Failure> {
        let terminal = self.target.terminal();
        terminal
            .confirm(&question.facts, &question.text, self.args.yes)
            .await
    }

    /// Ends the hold, once nothing else of the fencing is left. Reports it if somebody else holds the lock
    /// by now.
    pub(super) async fn end_hold(&self) -> Result<(), Failure> {
        let (target, terminal) = (self.target, self.target.terminal());
        let Some(hold) = &self.hold else {
            return Ok(());
        };
        let Err(failure) = target.unhold(hold).await else {
            return Ok(());
        };
        if let Some(lease) = taken_by(&failure) {
            terminal.warn(hold_lost(&target.node, &person(lease)));
            return Ok(());
        }
        if failure.lock_after() == LockAfter::Unchanged {
            terminal.warn(hold_left(&target.node, target.program()));
        }
        Err(failure)
    }
}
