//! The results of a change, and its errors.

use super::{DryRun, Running};
use crate::cluster::dry_run::predicted;
use crate::cluster::error::ApiError;
use crate::keeper::{Lost, LostBy};
use crate::lease::NodeLease;
use crate::outcome::{Change, Done, Error};
use crate::protocol::{Attempt, BootInstant, Finished, Refusal, Write, state};

impl Running {
    pub(super) fn done(&mut self, finished: Finished) -> Change {
        let (done, deadline) = match finished {
            Finished::AlreadyFree => (Done::AlreadyFree, None),
            Finished::AlreadyHeld => (Done::AlreadyHeld, None),
            Finished::Landed { write, deadline } => match done_by(&write) {
                Done::Released => (Done::Released, None),
                done => (done, Some(deadline)),
            },
        };
        let lease = self.lease.take();
        let before = match done {
            Done::AlreadyFree | Done::AlreadyHeld => lease.clone(),
            Done::Acquired | Done::Renewed | Done::Released => self.before.take(),
        };
        let held = self.task.dry_run == DryRun::None;
        self.change(done, before, lease, deadline.filter(|_| held))
    }

    /// The result that `attempt` would have, for a dry run that sends nothing.
    pub(super) fn predict(&mut self, attempt: &Attempt) -> Change {
        let before = self.lease.take();
        let after = predicted(
            &attempt.write,
            before.as_ref(),
            &self.task,
            &self.api.repository,
        );
        self.change(done_by(&attempt.write), before, Some(after), None)
    }

    fn change(
        &mut self,
        done: Done,
        before: Option<NodeLease>,
        mut lease: Option<NodeLease>,
        deadline: Option<BootInstant>,
    ) -> Change {
        let reduced = before
            .as_ref()
            .map(|lease| lease.reduced(&mut self.task.names));
        if self.task.dry_run != DryRun::None
            && done == Done::Acquired
            && let Some(lease) = &mut lease
        {
            // Nothing was acquired, so there is no lock id.
            lease.notes.nonce = None;
        }
        let fencing = self.fencing.map(|(_, version)| version);
        Change {
            node: self.task.node.clone(),
            row: self.row.take(),
            done,
            state_before: state(reduced.as_ref(), self.decided.unwrap_or(self.now)),
            before,
            fencing: fencing.filter(|_| done == Done::Acquired && deadline.is_some()),
            lease,
            deadline,
            requested: self.task.verb.requested_duration(),
            side_effects: std::mem::take(&mut self.side_effects),
            suspected_pauses: self.suspected_pauses,
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) -> Error {
        let now = self.api.time.now();
        let lease = self.lease.as_ref();
        let reduced = lease.map(|lease| lease.reduced(&mut self.task.names));
        self.api
            .refused(&self.task.node, refusal, lease, reduced.as_ref(), now)
    }

    /// The error if the write took effect and somebody ended the lock before the caller knew.
    pub(super) fn ended(&mut self) -> Error {
        let lease = self.lease.take();
        let holder = lease.as_ref().and_then(NodeLease::holder);
        Error::Lost(std::sync::Arc::new(Lost {
            subject: self.api.repository.subject(),
            node: self.task.node.clone(),
            by: match (&lease, holder) {
                (None, _) => LostBy::Deletion,
                (Some(_), None) => LostBy::Release,
                (Some(_), Some(holder)) => LostBy::TakeOver(holder.to_owned()),
            },
            lease,
            problem: None,
        }))
    }

    /// The error if a check keeps a lock from beginning. If it took effect before and expired, the caller has to know.
    pub(super) fn cannot_begin(&mut self, error: Error) -> Error {
        let is_final = matches!(
            error,
            Error::NodeDeleting(_) | Error::NodeNotFound(_) | Error::Refused(_)
        );
        if !is_final || !self.steps.is_unreported() {
            return error;
        }
        Error::Lost(std::sync::Arc::new(Lost {
            subject: self.api.repository.subject(),
            node: self.task.node.clone(),
            by: LostBy::Expiry,
            lease: self.lease.take(),
            problem: Some(error.to_string()),
        }))
    }

    pub(super) fn unknown(&self, source: ApiError) -> Error {
        Error::Unknown {
            subject: self.api.repository.subject(),
            node: self.task.node.clone(),
            intent: self.task.intent(),
            source,
        }
    }

    pub(crate) fn contended(&self) -> Error {
        Error::Contended {
            subject: self.api.repository.subject(),
            node: self.task.node.clone(),
            intent: self.task.intent(),
            conflicts: self.conflicts,
            waited: self.waited(),
        }
    }

    pub(super) fn out_of_time(&self, problem: Option<ApiError>) -> Error {
        let is_unknown = self.steps.is_unknown() || self.steps.unsettled().is_some();
        match problem {
            Some(problem) if problem.is_throttled() && !self.steps.is_unknown() => {
                Error::Api(problem)
            }
            Some(problem) if is_unknown => self.unknown(problem),
            None if is_unknown => self.unknown(ApiError::TimedOut(self.waited())),
            Some(problem) if problem.is_conflict() || problem.is_not_found() => self.contended(),
            Some(problem) => Error::Api(problem),
            None => Error::Api(ApiError::Undated),
        }
    }

    pub(super) fn explain_write(&self, error: ApiError, existed: bool) -> Error {
        if error
            .status()
            .is_some_and(|status| status.has_cause("NamespaceTerminating"))
        {
            return Error::NamespaceTerminating(self.api.repository.namespace().to_owned());
        }
        if error.is_not_found() && !existed && self.api.repository.locks_nodes() {
            return Error::NamespaceMissing(self.api.repository.namespace().to_owned());
        }
        // The server's clock or API user shows that the lock is not the caller's. No right is
        // missing.
        if error.policy_code() == Some("maint-live-lock") && !self.task.extras.takes_over {
            return Error::Api(error);
        }
        self.api
            .lease_right(if existed { "patch" } else { "create" })
            .explain(error)
    }
}

/// The result of a write that has taken effect.
fn done_by(write: &Write) -> Done {
    match write {
        Write::Acquire { .. } => Done::Acquired,
        Write::Renew { .. } => Done::Renewed,
        Write::Release { .. } => Done::Released,
    }
}
