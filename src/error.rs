//! All failures of a verb, kept as data until they are printed.

use std::fmt;
use std::time::Duration;

use maintenance_lease::protocol::{LockId, Refusal};
use maintenance_lease::{ApiError, Error, NodeLease, Refused};

use connect::ConnectError;

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
    /// A hook is not executable.
    NotExecutable,
    /// A hook does not exist.
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
    /// The arguments are invalid.
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// A file or standard input can't be read.
    Input(String),
    /// The selection is empty.
    NothingFound {
        /// What matched nothing.
        what: String,
        /// A name that may have been meant, if known.
        hint: Option<String>,
    },
    /// The API server can't be reached.
    Connect(ConnectError),
    /// A failure of the lock protocol, of the API server or of the connection to it.
    Lock(Error),
    /// Too dangerous in the current state.
    Unsafe {
        /// The reason.
        message: String,
        /// The missing condition, or what to do instead.
        hint: String,
    },
    /// A hook can't be run, or it failed.
    Hook {
        /// What happened to the hook, and to the operation.
        message: String,
        /// What to check, or what to type instead.
        hint: String,
        /// What scripts can tell of it.
        kind: Kind,
    },
    /// A write got no answer, or its answer was not awaited: it may have taken effect, or still may.
    OpenWrite {
        /// What is unknown.
        message: String,
        /// How to find out.
        hint: String,
        /// Whether it failed or was interrupted.
        kind: Kind,
    },
    /// The Node was deleted during the operation.
    NodeGone {
        /// The node.
        node: String,
    },
    /// A confirmation is needed, but stdin is no terminal.
    Unconfirmed(String),
    /// The operator answered no.
    Declined,
    /// Ctrl-C before a request was sent.
    Interrupted,
    /// Ctrl-C during a write with an unknown result: what would have happened to which node.
    InterruptedWrite {
        /// The node.
        node: String,
    },
    /// The wait timed out.
    TimedOut {
        /// The node.
        node: String,
        /// For how long.
        waited: Duration,
        /// The obstacle, if known.
        obstacle: Option<Obstacle>,
    },
    /// The API server's time is needed and not known, because this machine was paused.
    UnknownTime,
    /// Checking all locks of a set took longer than they last.
    TooSlow {
        /// One of the nodes.
        node: String,
    },
    /// A lock id belongs to another Lease than that of the node it was given for.
    OtherLease {
        /// The node.
        node: String,
        /// Whether the node has a Lease.
        has_one: bool,
    },
    /// This command acquired a lock that it must not keep, and could not release it.
    NotGivenBack {
        /// The node.
        node: String,
        /// The acquisition.
        lock_id: Option<LockId>,
        /// Why the release failed.
        cause: Box<Failure>,
    },
    /// The problem was reported already.
    Reported(Kind),
}

/// The obstacle of a wait.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// An acquisition would be refused.
    Refused(Box<Refused>),
    /// The node is not in the awaited state.
    State {
        /// Its state.
        how: String,
        /// The awaited state, such as `locked`.
        awaited: &'static str,
        /// How to find out why, if there is more to see.
        hint: Option<String>,
    },
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
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn nothing_found(what: impl Into<String>) -> Self {
        Self::NothingFound {
            what: what.into(),
            hint: None,
        }
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    /// Adds the place where the problem was found.
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Usage { message, hint } => Self::Usage {
                message: format!("{place}: {message}"),
                hint,
            },
            other => other,
        }
    }

    /// What scripts can tell of it, as a failure of a verb that changes locks, or of something else.
    pub(crate) fn kind(&self, verb: Option<Verb>) -> Kind {
        match self {
            Self::Usage { .. } => Kind::Usage,
            Self::Input(_)
            | Self::NothingFound { .. }
            | Self::NodeGone { .. }
            | Self::TooSlow { .. }
            | Self::UnknownTime
            | Self::Connect(_) => Kind::Other,
            Self::Lock(error) => kind_of(error, verb),
            Self::Unsafe { .. } | Self::Unconfirmed(_) | Self::Declined => Kind::Unsafe,
            Self::Interrupted | Self::InterruptedWrite { .. } => Kind::Interrupted,
            Self::TimedOut { .. } => Kind::TimedOut,
            Self::OtherLease { .. } => Kind::Locked,
            Self::NotGivenBack { cause, .. } => cause.kind(verb),
            Self::Hook { kind, .. } | Self::OpenWrite { kind, .. } | Self::Reported(kind) => *kind,
        }
    }

    /// What is known of the node's lock after it.
    pub(crate) fn lock_after(&self) -> LockAfter {
        match self {
            Self::InterruptedWrite { .. }
            | Self::OpenWrite { .. }
            | Self::Lock(Error::Unknown { .. }) => LockAfter::Unknown,
            Self::NotGivenBack { cause, .. } if cause.lock_after() == LockAfter::Unchanged => {
                LockAfter::Kept
            }
            Self::NotGivenBack { cause, .. } => cause.lock_after(),
            _ => LockAfter::Unchanged,
        }
    }

    /// The lock that caused it, as last seen. The inner `None` means that there was no Lease.
    pub(crate) fn lock(&self) -> Option<Option<&NodeLease>> {
        match self {
            Self::Lock(Error::Refused(refused))
            | Self::TimedOut {
                obstacle: Some(Obstacle::Refused(refused)),
                ..
            } => Some(refused.lease.as_ref()),
            // A lock that was lost by its time limit was not read again.
            Self::Lock(Error::Lost(lost)) => lost.lease.as_ref().map(Some),
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

/// The same of what the library refused or failed at.
fn kind_of(error: &Error, verb: Option<Verb>) -> Kind {
    match error {
        Error::Refused(refused) => match refused.refusal {
            Refusal::Held
            | Refusal::HeldByCaller
            | Refusal::Expired
            | Refusal::AdminHold
            | Refusal::NotHolder
            | Refusal::NotHeld
            | Refusal::NotAHold
            | Refusal::ChangedHands => Kind::Locked,
            // It keeps an acquisition off as any other holder does; for verbs that end
            // something it was only named wrongly.
            Refusal::OwnHold if matches!(verb, Some(Verb::Acquire | Verb::With)) => Kind::Locked,
            // Another purpose than the caller's keeps it: that of a fencing.
            Refusal::OwnHold if verb == Some(Verb::Hold) => Kind::Unsafe,
            Refusal::Unfinished { .. } => Kind::Unsafe,
            Refusal::Deleting if verb == Some(Verb::Verify) => Kind::Locked,
            Refusal::OwnHold | Refusal::Elected | Refusal::Deleting | Refusal::Foreign => {
                Kind::Other
            }
        },
        Error::Lost(_) => Kind::Lost,
        Error::Invalid(_) => Kind::Usage,
        _ => Kind::Other,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { message, .. }
            | Self::Unsafe { message, .. }
            | Self::Hook { message, .. }
            | Self::OpenWrite { message, .. }
            | Self::Input(message)
            | Self::Unconfirmed(message) => f.write_str(message),
            Self::NothingFound { what, .. } => write!(f, "no matching resources found: {what}"),
            Self::Connect(error) => write!(f, "{error}"),
            Self::Lock(error) => write!(f, "{error}"),
            Self::Declined => f.write_str("not confirmed: nothing was done"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::InterruptedWrite { node } => write!(
                f,
                "interrupted: the write for node/{node} was in progress and may still take effect"
            ),
            Self::NodeGone { node } => write!(
                f,
                "node/{node} was deleted, along with its lock and records"
            ),
            Self::TimedOut { node, .. } => write!(f, "timed out waiting for node/{node}"),
            Self::TooSlow { node } => write!(
                f,
                "could not lock node/{node}: checking all locks took longer than their duration"
            ),
            Self::UnknownTime => f.write_str(
                "the API server's time is unknown, because this machine was paused: nothing was changed",
            ),
            Self::OtherLease {
                node,
                has_one: true,
            } => write!(
                f,
                "the lock id does not match the Lease of node/{node}: it is for another node or for a \
                 deleted Lease"
            ),
            Self::OtherLease {
                node,
                has_one: false,
            } => write!(
                f,
                "node/{node} has no Lease: the lock id is for another node, or the Lease was deleted"
            ),
            Self::NotGivenBack { node, cause, .. } => {
                write!(f, "could not release node/{node}: {cause}")
            }
            Self::Reported(_) => Ok(()),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Lock(Error::Api(error))
    }
}
