//! Why a node is not protected, or why something of that protection stays, in words.

use std::fmt;

use maintenance_lease::{Error, MEDIK8S_LEASES};
use other_tools::WriteError;

use super::failed_request;
use super::machine_name::{machine_in, named, tool_name};
use crate::error::{ManagementError, ProtectionError};
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
pub(crate) fn cause(error: &WriteError) -> String {
    let words = match error {
        WriteError::NoManagementContext => {
            "it reads opt-outs on Machines only; to set them, add --management-context with the context of their cluster"
        }
        WriteError::Connect(error) => &error.to_string(),
        WriteError::NotInstalled { context, tool } => &format!(
            "the cluster of context {context} has no Machines of {}; name the context of its management cluster",
            tool_name(tool)
        ),
        WriteError::NoMachine { of, context } => {
            &format!("there is no {}", machine_in(of, context))
        }
        WriteError::OfAnotherNode { of, context } => {
            &format!("{} does not name this node", machine_in(of, context))
        }
        WriteError::MachineGone => "its Machine does not exist any more",
        WriteError::EarlierMachine(of) => {
            let machine = named(&of.namespace, &of.name);
            &format!("the node's earlier {machine} still has opt-outs")
        }
        WriteError::NotNamed => "the Node does not name its Machine",
        WriteError::UnknownApi => "this release does not know its API",
        WriteError::OtherCluster { context, server } => {
            &format!("the Machine is not in context {context}; it was in the cluster at {server}")
        }
        WriteError::NoContext { error, server } => {
            &format!("{error}; it was the context of the cluster at {server}")
        }
        WriteError::Copied { .. } => "it was created again from a copy",
        WriteError::Medik8sLeaseTaken { holder } if holder.is_empty() => {
            "its Lease is taken, but does not say by whom"
        }
        WriteError::Medik8sLeaseTaken { holder } => &format!("{holder} holds its Lease"),
        WriteError::NoMedik8sNamespace => {
            &format!("there is no namespace {MEDIK8S_LEASES}; is medik8s installed?")
        }
        WriteError::LockEnded { is_hold: true } => {
            "another command has ended this hold, or is ending it"
        }
        WriteError::LockEnded { is_hold: false } => {
            "another command has ended this lock, or is ending it"
        }
        WriteError::NodeGone => "the Node does not exist, or cannot be read",
        WriteError::Node(error) => &error.to_string(),
        WriteError::Request(error) => &match &**error {
            Error::Api(error) => failed_request::cause(error),
            error => error.to_string(),
        },
    };
    escape(words)
}

impl fmt::Display for ManagementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::SlowPlugin { context, limit } => {
                let limit = limit.as_secs();
                write!(
                    f,
                    "the credential plugin of context {context} did not end in {limit}s"
                )
            }
            Self::Unresponsive { context } => write!(
                f,
                "the cluster of context {context} did not answer an earlier request"
            ),
        }
    }
}

impl std::error::Error for ManagementError {}
