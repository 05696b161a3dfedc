//! All failures of a verb, kept as data until they are printed.

use std::fmt;
use std::time::Duration;

use maintenance_lease::protocol::LockId;
use maintenance_lease::{ApiError, Error, Refused};

use crate::exit::Code;
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
        /// The exit code for scripts.
        code: Code,
    },
    /// A write got no answer, or its answer was not awaited: it may have taken effect, or still may.
    OpenWrite {
        /// What is unknown.
        message: String,
        /// How to find out.
        hint: String,
        /// The exit code: whether it failed or was interrupted.
        code: Code,
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
    /// The problem was reported already; only the exit code is left.
    Reported(Code),
}

/// The obstacle of a wait.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// An acquisition would be refused.
    Refused(Box<Refused>),
    /// The node is not in the awaited state.
    Stands {
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
pub(crate) enum Fate {
    /// This command changed nothing.
    AsBefore,
    /// It was acquired and is still held.
    Kept,
    /// Whether it changed is unknown.
    Open,
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

    /// What is known about the node's lock after this failure.
    pub(crate) fn fate(&self) -> Fate {
        match self {
            Self::InterruptedWrite { .. }
            | Self::OpenWrite { .. }
            | Self::Lock(Error::Unknown { .. }) => Fate::Open,
            Self::NotGivenBack { cause, .. } if cause.fate() == Fate::AsBefore => Fate::Kept,
            Self::NotGivenBack { cause, .. } => cause.fate(),
            _ => Fate::AsBefore,
        }
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
