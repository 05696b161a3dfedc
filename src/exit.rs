//! Exit codes. Scripts depend on them: each is documented, and one match decides which applies.

use maintenance_lease::Error;
use maintenance_lease::protocol::Refusal;
use pod_safety::fencing::steps;

use crate::error::{Failure, FencingRefusal, HookError, Kind, ProgramError, Verb};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    /// Everything requested is done.
    pub(crate) const DONE: Self = Self(0);
    /// Any failure without a code of its own, including a request that timed out.
    pub(crate) const ERROR: Self = Self(1);
    /// The arguments are invalid; nothing was done.
    pub(crate) const USAGE: Self = Self(2);
    /// Somebody else holds the lock, or it is not the caller's.
    pub(crate) const HELD: Self = Self(3);
    /// The wait timed out.
    pub(crate) const TIMED_OUT: Self = Self(4);
    /// A lock was lost while a command ran under it, or while others were locked.
    pub(crate) const LOST: Self = Self(5);
    /// Refused for safety: a confirmation is needed, or was answered with no.
    pub(crate) const UNSAFE: Self = Self(6);
    /// A failure of `with` itself, as opposed to its command's.
    pub(crate) const WRAPPER: Self = Self(supervisor::Exit::OF_WRAPPER);
    /// The hook exists and can't be executed; nothing was done.
    pub(crate) const NOT_EXECUTABLE: Self = Self(126);
    /// The hook does not exist; nothing was done.
    pub(crate) const NOT_FOUND: Self = Self(127);
    /// Interrupted by Ctrl-C.
    pub(crate) const INTERRUPTED: Self = Self(130);

    /// The code of a command that was run, or one that the caller chose.
    pub(crate) const fn other(code: u8) -> Self {
        Self(code)
    }

    /// The code as a number.
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// The worse of two.
    pub(crate) fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    /// The rank from the best to the worst: for several nodes, the worst counts.
    fn rank(self) -> u8 {
        match self {
            Self::DONE => 0,
            Self::TIMED_OUT => 1,
            Self::HELD => 2,
            Self::LOST => 3,
            Self::UNSAFE => 4,
            Self::NOT_EXECUTABLE => 5,
            Self::NOT_FOUND => 6,
            Self::ERROR => 7,
            Self::WRAPPER => 9,
            Self::USAGE => 10,
            Self::INTERRUPTED => 11,
            // That of a command, which is passed on.
            Self(_) => 8,
        }
    }

    /// The code for `failure` of a verb that changes locks, or of something else.
    pub(crate) fn of(failure: &Failure, verb: Option<Verb>) -> Self {
        failure.kind(verb).into()
    }
}

impl Failure {
    /// The kind of failure that scripts can distinguish. It depends on whether a verb that changes
    /// locks failed.
    pub(crate) fn kind(&self, verb: Option<Verb>) -> Kind {
        match self {
            Self::Input(_) => Kind::Usage,
            Self::Unexpected(_)
            | Self::NothingFound(_)
            | Self::KeepsChanging { .. }
            | Self::NotKept { .. }
            | Self::NoLongerFenced { .. }
            | Self::StaysFenced { .. }
            | Self::UnknownWrite { .. }
            | Self::NodeGone { .. }
            | Self::Unread { .. }
            | Self::UnknownTime
            | Self::Connect(_) => Kind::Other,
            Self::Lock(error) => kind_of(error, verb),
            Self::Fencing(FencingRefusal::Fence {
                why: steps::Refusal::LockLost,
                ..
            }) => Kind::Lost,
            Self::Fencing(FencingRefusal::StillReports { .. }) => Kind::TimedOut,
            Self::Policies(policies::Refusal::Unknown { .. } | policies::Refusal::NotInstalled) => {
                Kind::Other
            }
            Self::Fencing(_)
            | Self::OtherTools { .. }
            | Self::Policies(_)
            | Self::Unconfirmed(_)
            | Self::Declined => Kind::Unsafe,
            Self::Program(ProgramError::NotFound(_)) => Kind::NotFound,
            Self::Program(ProgramError::NotExecutable(_)) => Kind::NotExecutable,
            Self::Hook(error) => match error {
                HookError::Running { .. } => Kind::Locked,
                HookError::NotCordoned { .. }
                | HookError::Failed { .. }
                | HookError::NodeGone { .. } => Kind::Other,
                HookError::Interrupted { .. } => Kind::Interrupted,
                HookError::StillUnreachable { .. } => Kind::TimedOut,
            },
            Self::UnknownFencing { why, .. } => why.kind(None),
            Self::Interrupted
            | Self::InterruptedAgain
            | Self::InterruptedAfterResult
            | Self::InterruptedLock { .. }
            | Self::InterruptedWrite { .. } => Kind::Interrupted,
            Self::TimedOut { .. } | Self::Unanswered { .. } => Kind::TimedOut,
            Self::WrongLockId { .. } => Kind::Locked,
            Self::ReleaseFailed { cause, .. } => cause.kind(verb),
            Self::UnknownDeletion { error: None, .. } => Kind::Interrupted,
            Self::UnknownDeletion { .. } => Kind::Other,
            Self::Reported(kind) => *kind,
        }
    }
}

/// The same for a refusal or failure of the library.
fn kind_of(error: &Error, verb: Option<Verb>) -> Kind {
    match error {
        Error::Refused(refused) => match refused.refusal {
            // The hold of a fencing prevents it.
            Refusal::OwnHold if verb == Some(Verb::Hold) => Kind::Unsafe,
            Refusal::Held
            | Refusal::HeldByCaller
            | Refusal::Expired
            | Refusal::AdminHold
            | Refusal::OwnHold
            | Refusal::NotHolder
            | Refusal::NotHeld
            | Refusal::NotAHold
            | Refusal::ChangedHands => Kind::Locked,
            Refusal::Unfinished { .. } => Kind::Unsafe,
            Refusal::Deleting if verb == Some(Verb::Verify) => Kind::Locked,
            Refusal::Elected | Refusal::Deleting | Refusal::Foreign | Refusal::TooLong { .. } => {
                Kind::Other
            }
        },
        Error::Lost(_) => Kind::Lost,
        Error::NamespaceMissing(_) => Kind::Unsafe,
        Error::Invalid(_) => Kind::Usage,
        // By the server's clock or API user, somebody else has the lock.
        Error::Api(error) if error.policy_code() == Some("maint-live-lock") => Kind::Locked,
        Error::NodeNotFound(_)
        | Error::NodeDeleting(_)
        | Error::MissingRight { .. }
        | Error::NamespaceTerminating(_)
        | Error::Unknown { .. }
        | Error::Contended { .. }
        | Error::Api(_) => Kind::Other,
    }
}

impl From<Kind> for Code {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::TimedOut => Self::TIMED_OUT,
            Kind::Locked => Self::HELD,
            Kind::Lost => Self::LOST,
            Kind::Unsafe => Self::UNSAFE,
            Kind::NotExecutable => Self::NOT_EXECUTABLE,
            Kind::NotFound => Self::NOT_FOUND,
            Kind::Other => Self::ERROR,
            Kind::Usage => Self::USAGE,
            Kind::Interrupted => Self::INTERRUPTED,
        }
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::State;
    use maintenance_lease::{ApiError, Refused, Subject};
    use serde_json::json;

    use super::*;

    #[test]
    fn ones_own_hold_refuses_like_any_other() {
        let refused = Failure::Lock(Error::Refused(Box::new(Refused {
            subject: Subject::Node,
            node: "worker-1".to_owned(),
            refusal: Refusal::OwnHold,
            lease: None,
            state: State::AdminHold,
        })));
        assert_eq!(Code::of(&refused, Some(Verb::Acquire)), Code::HELD);
        assert_eq!(Code::of(&refused, Some(Verb::Renew)), Code::HELD);
        assert_eq!(Code::of(&refused, Some(Verb::Hold)), Code::UNSAFE);
        let kept = Failure::ReleaseFailed {
            node: "worker-1".to_owned(),
            lock_id: None,
            until: None,
            cause: Box::new(refused),
        };
        assert_eq!(Code::of(&kept, Some(Verb::Acquire)), Code::HELD);
    }

    #[test]
    fn a_live_lock_of_another_api_user_is_locked() {
        let code = |rule: &str| {
            let message = format!(
                "leases \"n\" is forbidden: ValidatingAdmissionPolicy 'kubectl-maint-leases' with binding \
                 'kubectl-maint-leases' denied request: {rule}: no"
            );
            let status = json!({"kind": "Status", "code": 403, "message": message});
            let status = serde_json::from_value(status).expect("a status");
            let failure = Failure::Lock(Error::Api(ApiError::Status(Box::new(status))));
            Code::of(&failure, Some(Verb::Release))
        };
        assert_eq!(code("maint-live-lock"), Code::HELD);
        assert_eq!(code("maint-clock"), Code::ERROR);
    }

    #[test]
    fn worst_exit_code_of_several_nodes_wins() {
        let order = [
            Code::DONE,
            Code::TIMED_OUT,
            Code::HELD,
            Code::LOST,
            Code::UNSAFE,
            Code::NOT_EXECUTABLE,
            Code::NOT_FOUND,
            Code::ERROR,
            Code::other(42),
            Code::WRAPPER,
            Code::USAGE,
            Code::INTERRUPTED,
        ];
        for (index, &better) in order.iter().enumerate() {
            assert_eq!(better.worse(better), better);
            for &worse in &order[index + 1..] {
                assert_eq!(better.worse(worse), worse);
                assert_eq!(worse.worse(better), worse);
            }
        }
    }
}
