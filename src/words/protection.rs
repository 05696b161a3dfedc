//! Why a node is not protected, or why something of that protection stays, in words.

use std::fmt;

use maintenance_lease::Error;
use other_tools::WriteError;

use super::failed_request;
use crate::error::ProtectionError;
use crate::text::escape;

impl fmt::Display for ProtectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => f.write_str(&cause(error)),
            Self::TooSlow(limit) => {
                let limit = limit.as_secs();
                write!(f, "the API server did not answer in {limit}s")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// Why a part was not written, or not removed.
fn cause(error: &WriteError) -> String {
    let words = match error {
        WriteError::LockEnded { is_hold: true } => {
            "another command has ended this hold, or is ending it"
        }
        WriteError::LockEnded { is_hold: false } => {
            "another command has ended this lock, or is ending it"
        }
        WriteError::NodeGone => "the Node does not exist, or cannot be read",
        WriteError::Request(error) => &match &**error {
            Error::Api(error) => failed_request::cause(error),
            error => error.to_string(),
        },
    };
    escape(words)
}
