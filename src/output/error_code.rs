//! Codes that tell scripts why a command failed for an item.

use maintenance_lease::protocol::Refusal;
use maintenance_lease::{ApiError, Error};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Failure, HookError, Kind};

/// Why a command failed for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum ErrorCode {
    /// Somebody else has locked the node.
    Locked,
    /// Somebody else has the node on hold.
    OnHold,
    /// The caller already holds this lock.
    LockedByCaller,
    /// The caller already has the node on hold.
    OnHoldByCaller,
    /// The lock has expired.
    Expired,
    /// The lock has expired, and the node is not ready or cordoned: its holder may not have finished.
    Unfinished,
    /// The lock is not the caller's.
    NotHolder,
    /// Nobody holds the lock.
    NotLocked,
    /// The node is locked, but not on hold.
    NotOnHold,
    /// Another acquisition has replaced the one that was meant.
    ChangedHands,
    /// The lock id belongs to another Lease.
    WrongLockId,
    /// The Lease belongs to coordinated leader election.
    LeaderElection,
    /// The Lease belongs to another application.
    ForeignLease,
    /// With the added time, the lock would last longer than an hour.
    TooLong,
    /// The Node, its Lease or the namespace of the Leases is being deleted.
    Deleting,
    /// It does not exist, or was deleted during the command.
    NotFound,
    /// The user lacks a permission.
    Forbidden,
    /// An admission policy or webhook of the cluster refused the write.
    RefusedByPolicy,
    /// The credentials are missing or were not accepted.
    Unauthorized,
    /// The API server can't be reached, or did not answer in time.
    Unavailable,
    /// The Lease kept changing, and nothing was written.
    Conflict,
    /// The outcome can't be determined: the write may still take effect.
    Unknown,
    /// A lock was lost while the command locked others.
    Lost,
    /// It was acquired, must not be kept, and could not be released.
    NotReleased,
    /// A wait reached its time limit.
    TimedOut,
    /// Too dangerous in the current state.
    Unsafe,
    /// A confirmation is missing, or was answered with no.
    NotConfirmed,
    /// Another hook may still be running for the node.
    HookRunning,
    /// The hook failed or could not be run.
    HookFailed,
    /// Nothing was done, because the command failed for another item.
    OtherFailed,
    /// The command was interrupted before it was done.
    Interrupted,
    /// Anything else.
    Failed,
}

impl ErrorCode {
    pub(crate) fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Lock(error) => of_error(error),
            Failure::Connect(_) | Failure::UnknownTime => Self::Unavailable,
            Failure::NothingFound(_) | Failure::NodeGone { .. } => Self::NotFound,
            Failure::Policies(policies::Refusal::Unknown { .. }) => Self::Unknown,
            Failure::Fencing(_) => match failure.kind(None) {
                Kind::Lost => Self::Lost,
                Kind::TimedOut => Self::TimedOut,
                _ => Self::Unsafe,
            },
            Failure::OtherTools { .. } | Failure::Policies(_) => Self::Unsafe,
            Failure::Unconfirmed(_) | Failure::Declined => Self::NotConfirmed,
            Failure::Hook(error) => match error {
                HookError::Running { .. } => Self::HookRunning,
                HookError::StillUnreachable { .. } => Self::TimedOut,
                HookError::Interrupted { .. } => Self::Interrupted,
                HookError::NotCordoned { .. }
                | HookError::Failed { .. }
                | HookError::NodeGone { .. } => Self::HookFailed,
            },
            Failure::Program(_) => Self::HookFailed,
            Failure::UnknownDeletion { .. }
            | Failure::InterruptedLock { .. }
            | Failure::UnknownFencing { .. }
            | Failure::UnknownWrite { .. }
            | Failure::InterruptedWrite { .. } => Self::Unknown,
            Failure::Interrupted | Failure::InterruptedAgain | Failure::InterruptedAfterResult => {
                Self::Interrupted
            }
            Failure::TimedOut { .. } | Failure::Unanswered { .. } => Self::TimedOut,
            Failure::KeepsChanging { .. } => Self::Conflict,
            Failure::WrongLockId { .. } => Self::WrongLockId,
            Failure::ReleaseFailed { .. } => Self::NotReleased,
            Failure::Input(_)
            | Failure::Unexpected(_)
            | Failure::NotKept { .. }
            | Failure::NoLongerFenced { .. }
            | Failure::StaysFenced { .. }
            | Failure::Unread { .. }
            | Failure::Reported(_) => Self::Failed,
        }
    }
}

fn of_error(error: &Error) -> ErrorCode {
    match error {
        Error::Refused(refused) => of_refusal(refused.refusal),
        Error::NodeNotFound(_) | Error::NamespaceMissing(_) => ErrorCode::NotFound,
        Error::NodeDeleting(_) | Error::NamespaceTerminating(_) => ErrorCode::Deleting,
        Error::MissingRight { .. } => ErrorCode::Forbidden,
        Error::Unknown { .. } => ErrorCode::Unknown,
        Error::Contended { .. } => ErrorCode::Conflict,
        Error::Lost(_) => ErrorCode::Lost,
        Error::Api(error) => of_api(error),
        Error::Invalid(_) => ErrorCode::Failed,
    }
}

fn of_refusal(refusal: Refusal) -> ErrorCode {
    match refusal {
        Refusal::Held => ErrorCode::Locked,
        Refusal::HeldByCaller => ErrorCode::LockedByCaller,
        Refusal::Expired => ErrorCode::Expired,
        Refusal::Unfinished { .. } => ErrorCode::Unfinished,
        Refusal::AdminHold => ErrorCode::OnHold,
        Refusal::OwnHold => ErrorCode::OnHoldByCaller,
        Refusal::NotHolder => ErrorCode::NotHolder,
        Refusal::NotHeld => ErrorCode::NotLocked,
        Refusal::NotAHold => ErrorCode::NotOnHold,
        Refusal::ChangedHands => ErrorCode::ChangedHands,
        Refusal::Elected => ErrorCode::LeaderElection,
        Refusal::Deleting => ErrorCode::Deleting,
        Refusal::Foreign => ErrorCode::ForeignLease,
        Refusal::TooLong { .. } => ErrorCode::TooLong,
    }
}

fn of_api(error: &ApiError) -> ErrorCode {
    match error {
        ApiError::Status(status) => match status.code {
            _ if error.is_by_webhook() => ErrorCode::RefusedByPolicy,
            401 => ErrorCode::Unauthorized,
            403 if error.is_by_policy() => ErrorCode::RefusedByPolicy,
            403 => ErrorCode::Forbidden,
            404 => ErrorCode::NotFound,
            409 => ErrorCode::Conflict,
            429 | 500.. => ErrorCode::Unavailable,
            _ => ErrorCode::Failed,
        },
        ApiError::TimedOut(_)
        | ApiError::Transport(_)
        | ApiError::Unreadable(_)
        | ApiError::Altered
        | ApiError::CutShort { .. }
        | ApiError::NotKubernetes { .. }
        | ApiError::Paused
        | ApiError::Undated => ErrorCode::Unavailable,
        ApiError::NoRuntime(_) => ErrorCode::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pod_safety::fencing::steps;
    use serde_json::json;

    use super::*;
    use crate::error::FencingRefusal;

    #[test]
    fn a_fencing_that_timed_out_or_lost_its_lock_says_so_as_its_exit_code_does() {
        let node = || "worker-1".to_owned();
        let still_reports = FencingRefusal::StillReports {
            node: node(),
            waited: Duration::from_secs(1),
        };
        let lost = FencingRefusal::Fence {
            node: node(),
            why: steps::Refusal::LockLost,
        };
        for (refusal, kind, code) in [
            (still_reports, Kind::TimedOut, ErrorCode::TimedOut),
            (lost, Kind::Lost, ErrorCode::Lost),
        ] {
            let failure = Failure::Fencing(refusal);
            assert_eq!(failure.kind(None), kind);
            assert_eq!(ErrorCode::of(&failure), code);
        }
    }

    #[test]
    fn a_policy_refuses_with_another_code_than_a_missing_permission() {
        let code = |message: &str| {
            let status = json!({"kind": "Status", "code": 403, "message": message});
            let status = serde_json::from_value(status).expect("a status");
            ErrorCode::of(&ApiError::Status(Box::new(status)).into())
        };
        assert_eq!(
            code(
                "leases \"n\" is forbidden: ValidatingAdmissionPolicy 'kubectl-maint-leases' with binding \
                 'kubectl-maint-leases' denied request: maint-clock: too late"
            ),
            ErrorCode::RefusedByPolicy
        );
        assert_eq!(
            code("leases \"n\" is forbidden: User \"ann\" cannot patch resource \"leases\""),
            ErrorCode::Forbidden
        );
    }
}
