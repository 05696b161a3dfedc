//! All failures of a verb, kept as data until they are printed: no sentences, and no exit codes.

mod fencing;
mod input;
mod keys;
pub(crate) mod lock_state;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use maintenance_lease::protocol::{Instant, LockId, Now, Refusal};
use maintenance_lease::{ApiError, Error, NodeLease, Refused};
use node_keys::Finding;
use pod_safety::Why;
use pod_safety::fencing::Remains;
use pod_safety::report::DeletionTarget;

use connect::ConnectError;

pub(crate) use self::fencing::{FencingRefusal, FencingWrite, HookEnd, HookError};
pub(crate) use self::input::InputError;
pub(crate) use self::keys::KeysError;
use self::lock_state::Awaited;
pub(crate) use self::value::InvalidValue;

/// A verb that changes locks or relies on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Acquire,
    Renew,
    Release,
    Hold,
    Unhold,
    With,
    Verify,
    Fence,
    Unfence,
    Wait,
}

/// Why a program can't be run.
#[derive(Clone, Debug)]
pub(crate) enum ProgramError {
    /// It does not exist.
    NotFound(String),
    /// It is not executable.
    NotExecutable(String),
}

/// What scripts can tell of a failure: each kind has its own exit code. The most serious is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A wait reached its time limit.
    TimedOut,
    /// Somebody else holds the lock, or it is not the caller's.
    Locked,
    /// A lock was lost while something relied on it.
    Lost,
    /// Refused for safety, or not confirmed.
    Unsafe,
    /// A hook or a command is not executable.
    NotExecutable,
    /// A hook or a command does not exist.
    NotFound,
    /// Anything else.
    Other,
    /// The command line cannot be meant.
    Usage,
    /// Ctrl-C or another signal.
    Interrupted,
}

/// Why a verb, or its part for one node, did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments, the environment or a list of nodes is invalid.
    Input(InputError),
    /// An error that no code distinguishes, such as a file that can't be read.
    Unexpected(anyhow::Error),
    /// The selection is empty.
    NothingFound(NothingFound),
    /// The API server can't be reached.
    Connect(ConnectError),
    /// A failure of the lock protocol, of the API server or of the connection to it.
    Lock(Error),
    /// Too dangerous in the current state of a node.
    Fencing(FencingRefusal),
    /// Other tools work on these nodes, or it is unknown whether one does.
    OtherTools {
        /// What they do to each node; `None`: the Node can't be read.
        nodes: Vec<(String, Option<Vec<Finding>>)>,
        now: Now,
    },
    /// Policies must not be changed in the current state of the cluster.
    Policies(policies::Refusal),
    /// The program of a hook or of `with` can't be run.
    Program(ProgramError),
    /// A hook was not started, or it failed.
    Hook(HookError),
    /// A write of a fencing got no answer, or the command did not wait for it.
    UnknownFencing {
        node: String,
        write: FencingWrite,
        /// Why there is no answer.
        why: Box<Failure>,
    },
    /// The deletion of an object got no answer, or the command did not wait for it.
    UnknownDeletion {
        target: Box<DeletionTarget>,
        /// Why there is no answer; `None`: it was not awaited.
        error: Option<ApiError>,
    },
    /// Ctrl-C while a node was locked for a deletion, with an unknown result.
    InterruptedLock {
        node: String,
        /// How long the lock would last.
        duration: Duration,
    },
    /// The Node can't be read.
    Unread { node: String, why: Why },
    /// The Node kept changing, so it could not be written.
    KeepsChanging { node: String, error: ApiError },
    /// The record of a fencing was written, and then it or the taint was removed again.
    NotKept { node: String },
    /// The record or the taint of a fencing was removed while the command waited.
    NoLongerFenced { node: String },
    /// The record or the taint of a fencing is still on the Node after the write that removes them.
    StaysFenced { node: String },
    /// The result of a write to the Node is unknown.
    UnknownWrite {
        node: String,
        /// `None` if no answer was awaited.
        error: Option<ApiError>,
    },
    /// The Node was deleted during the operation.
    NodeGone { node: String },
    /// A confirmation is needed, but nobody can be asked.
    Unconfirmed(Unconfirmed),
    /// The operator answered no.
    Declined,
    /// Ctrl-C before a request was sent.
    Interrupted,
    /// Ctrl-C during a write with an unknown result: what would have happened to which node.
    InterruptedWrite { node: String },
    /// The wait timed out.
    TimedOut {
        node: String,
        /// For how long.
        waited: Duration,
        /// The obstacle, if known.
        obstacle: Option<Obstacle>,
    },
    /// The API server did not answer within the time limit of a wait.
    Unanswered { waited: Duration },
    /// The API server's time is needed and not known, because this machine was paused.
    UnknownTime,
    /// A lock id was never that of a lock of this node's Lease.
    WrongLockId {
        node: String,
        /// The Lease of that node.
        lease: Option<Box<NodeLease>>,
    },
    /// This command acquired a lock that it must not keep, and could not release it.
    ReleaseFailed {
        node: String,
        lock_id: Option<LockId>,
        /// When it ends by itself; `None`: it is on hold.
        until: Option<Instant>,
        cause: Box<Failure>,
    },
    /// A second Ctrl-C, which ended the command at once.
    InterruptedAgain,
    /// Ctrl-C after the result was printed, while Events or keys of the Node were being written.
    InterruptedAfterResult,
    /// The problem was reported already.
    Reported(Kind),
}

/// What was looked for, and does not exist.
#[derive(Debug)]
pub(crate) enum NothingFound {
    /// Nodes in a list; `-` is standard input.
    Listed(PathBuf),
    /// Any node.
    Nodes,
    /// Nodes with these labels.
    Labeled(String),
    /// Locks of the caller that this verb can change.
    Own {
        caller: String,
        verb: Verb,
        /// Whether the caller has locks for another verb.
        has_others: bool,
    },
    /// An object in kubectl's form, such as `pvc/data`.
    Object {
        /// Its namespace; `None` if it has none.
        namespace: Option<String>,
        object: String,
    },
    /// A pod.
    Pod { namespace: String, name: String },
    /// Pods with these labels.
    Pods { namespace: String, selector: String },
}

/// Why nobody can be asked.
#[derive(Debug)]
pub(crate) enum Unconfirmed {
    /// There is no terminal.
    NoTerminal,
    /// Standard input has a list of nodes.
    StdinInUse,
    /// The answer can't be read.
    NoAnswer(std::io::Error),
}

/// The obstacle of a wait.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// An acquisition would be refused.
    Refused(Box<Refused>),
    /// The node is not in the awaited state.
    State {
        lease: Option<Box<NodeLease>>,
        now: Now,
        awaited: Awaited,
    },
    /// Something is left of a fenced node.
    Remains(Box<Remains>),
}

/// What is known about a node's lock after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockAfter {
    /// This command changed nothing.
    Unchanged,
    /// It was acquired and is still held.
    Kept,
    /// Whether it changed is unknown.
    Unknown,
}

impl Failure {
    /// The same as `error`. But if the id of the lock that was `demanded` belongs to another Lease, or was never the id of a lock,
    /// no newer lock replaced it.
    pub(crate) fn of_lock_id(error: Error, demanded: Option<&LockId>) -> Self {
        if let (Error::Refused(refused), Some(id)) = (&error, demanded)
            && refused.refusal == Refusal::ChangedHands
            && let Some(lease) = &refused.lease
        {
            // Each acquisition of a Lease has a number of its own.
            if lease.uid() != id.uid() || lease.transitions() == id.transitions() {
                return Self::WrongLockId {
                    node: refused.node.clone(),
                    lease: Some(Box::new(lease.clone())),
                };
            }
        }
        error.into()
    }

    /// What is known of the node's lock after it.
    pub(crate) fn lock_after(&self) -> LockAfter {
        match self {
            Self::InterruptedWrite { .. }
            | Self::UnknownDeletion { .. }
            | Self::InterruptedLock { .. }
            | Self::UnknownFencing { .. }
            | Self::UnknownWrite { .. }
            | Self::Lock(Error::Unknown { .. }) => LockAfter::Unknown,
            Self::ReleaseFailed { cause, .. } if cause.lock_after() == LockAfter::Unchanged => {
                LockAfter::Kept
            }
            Self::ReleaseFailed { cause, .. } => cause.lock_after(),
            _ => LockAfter::Unchanged,
        }
    }

    /// The refusal of one node, at once or after a wait.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Lock(Error::Refused(refused))
            | Self::TimedOut {
                obstacle: Some(Obstacle::Refused(refused)),
                ..
            } => Some(refused),
            _ => None,
        }
    }

    /// The lock that caused it, as last seen. The inner `None` means that there was no Lease.
    pub(crate) fn lock(&self) -> Option<Option<&NodeLease>> {
        if let Some(refused) = self.refused() {
            return Some(refused.lease.as_ref());
        }
        match self {
            // A lock that was lost by its time limit was not read again.
            Self::Lock(Error::Lost(lost)) => lost.lease.as_ref().map(Some),
            Self::WrongLockId { lease, .. } => Some(lease.as_deref()),
            _ => None,
        }
    }

    /// The Lease of that lock.
    pub(crate) fn lease(&self) -> Option<&NodeLease> {
        self.lock().flatten()
    }

    /// The API error behind it, if any.
    pub(crate) fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Lock(
                Error::Api(source)
                | Error::MissingRight { source, .. }
                | Error::Unknown { source, .. },
            ) => Some(source),
            _ => None,
        }
    }

    /// Whether a read that failed like this may succeed if it is retried.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Lock(Error::Api(error)) if error.may_pass())
    }
}

/// Whether the server refuses the write to a Lease, such as for a missing right or by a webhook.
pub(crate) fn is_refused_by_server(error: &Error) -> bool {
    match error {
        Error::MissingRight { .. } => true,
        Error::Api(source) => source.is_refusal(),
        _ => false,
    }
}

macro_rules! from {
    ($($error:ty => $variant:ident,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    ConnectError => Connect,
    Error => Lock,
    FencingRefusal => Fencing,
    HookError => Hook,
    InputError => Input,
    NothingFound => NothingFound,
    ProgramError => Program,
    anyhow::Error => Unexpected,
    policies::Refusal => Policies,
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Lock(Error::Api(error))
    }
}

impl From<policies::Error> for Failure {
    fn from(error: policies::Error) -> Self {
        match error {
            policies::Error::Api(error) => error.into(),
            policies::Error::Refused(refusal) => refusal.into(),
        }
    }
}
