//! Everything that keeps a verb from its end, as data until the last moment.

use std::fmt;
use std::time::Duration;

use maintenance_lease::protocol::{LockId, Refusal};
use maintenance_lease::{ApiError, Error, Refused};

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
    /// It was asked in a way that can't be meant.
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// A file or standard input can't be used.
    Input(String),
    /// The selection is empty.
    NothingFound {
        /// What matched nothing.
        what: String,
        /// What may have been meant, where that is known.
        hint: Option<String>,
    },
    /// There is no way to the API server.
    Connect(ConnectError),
    /// The rules, the API server or the way to it.
    Lock(Error),
    /// It is too dangerous as things stand.
    Unsafe {
        /// What stands against it.
        message: String,
        /// What would have to be true, or what to do instead.
        hint: String,
    },
    /// A hook can't be run, or did not succeed.
    Hook {
        /// What became of it, and of what it was run for.
        message: String,
        /// What to look at, or what to type instead.
        hint: String,
        /// What that is to scripts.
        kind: Kind,
    },
    /// A write got no answer, or was not waited for: it may have taken effect, or may yet.
    OpenWrite {
        /// What is not known.
        message: String,
        /// How to see.
        hint: String,
        /// Whether it failed or was interrupted, to scripts.
        kind: Kind,
    },
    /// A Node was deleted while it was worked on.
    NodeGone {
        /// The node.
        node: String,
    },
    /// A confirmation is needed and nobody can be asked.
    Unconfirmed(String),
    /// Somebody was asked and said no.
    Declined,
    /// Ctrl-C, before a request was under way.
    Interrupted,
    /// Ctrl-C with a write under way, whose fate is open: what would have happened to which node.
    InterruptedWrite {
        /// The node.
        node: String,
    },
    /// It was waited for in vain.
    TimedOut {
        /// The node.
        node: String,
        /// For how long.
        waited: Duration,
        /// What stood in the way, where that was learnt.
        obstacle: Option<Obstacle>,
    },
    /// The locks of a set could not all be checked within their duration.
    TooSlow {
        /// One of the nodes.
        node: String,
    },
    /// A lock id is of another Lease than that of the node it was given for.
    OtherLease {
        /// The node.
        node: String,
        /// It has a Lease.
        has_one: bool,
    },
    /// What this command acquired, and must not keep, it could not give back.
    NotGivenBack {
        /// The node.
        node: String,
        /// The acquisition.
        lock_id: Option<LockId>,
        /// Why not.
        cause: Box<Failure>,
    },
    /// The problem was reported already.
    Reported(Kind),
}

/// What was in the way of who waited.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// An acquisition would be refused.
    Refused(Box<Refused>),
    /// The node stands otherwise than it was waited for.
    Stands {
        /// How.
        how: String,
        /// What it was waited to be, such as `locked`.
        awaited: &'static str,
        /// How to find out why, where there is more to see.
        hint: Option<String>,
    },
}

/// What is known of a node's lock after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// This command changed nothing.
    AsBefore,
    /// It was acquired, and is held still.
    Kept,
    /// Whether it changed is not known.
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

    /// Says where the problem was found.
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

    /// A read that ended like this may succeed when it is made again.
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
