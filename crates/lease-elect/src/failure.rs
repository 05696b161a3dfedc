//! All errors of lease-elect, kept as data until they are printed.

use std::io;
use std::net::SocketAddr;

use connect::ConnectError;
use maintenance_lease::protocol::identity::InvalidIdentity;
use maintenance_lease::{ApiError, Error, InvalidOption};
use supervisor::StartError;

/// An error of lease-elect itself, not of the daemon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The options are invalid.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// The API server can't be reached.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// A failure of the lock protocol or of the API server.
    #[error("{}", words(.0))]
    Lock(#[from] Error),
    /// The identity is not valid for a holder.
    #[error("{0}")]
    Holder(#[from] InvalidIdentity),
    /// The status can't be served.
    #[error("failed to listen on {address} for --status-address: {source}")]
    Status {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The daemon can't be started.
    #[error("{0}")]
    Start(#[from] StartError),
    /// The system refuses something that is needed to continue.
    #[error("{0}")]
    System(#[source] io::Error),
}

impl Failure {
    /// What to do about the error, if the message does not make that clear.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => Some(hint.clone()),
            Self::Connect(error) => error.hint(),
            Self::Lock(Error::MissingRight { right, .. }) => Some(format!(
                "the API user of lease-elect needs permission to {right}"
            )),
            Self::Lock(error) => connection(error).and_then(|error| error.hint()),
            _ => None,
        }
    }
}

impl From<InvalidOption> for Failure {
    fn from(error: InvalidOption) -> Self {
        Self::Lock(error.into())
    }
}

/// The error, worded as in kubectl.
pub(crate) fn words(error: &Error) -> String {
    match connection(error) {
        Some(problem) => problem.to_string(),
        None => error.to_string(),
    }
}

/// The connection error that caused `error`, if there is one.
fn connection(error: &Error) -> Option<ConnectError> {
    match error {
        Error::Api(ApiError::Transport(source)) => ConnectError::classify(source),
        _ => None,
    }
}

/// Whether the error may be temporary, because the server cannot be reached or is overloaded.
pub(crate) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Api(problem) => problem.leaves_writes_unknown() || problem.is_throttled(),
        Error::Unknown { .. } | Error::Contended { .. } => true,
        _ => false,
    }
}
