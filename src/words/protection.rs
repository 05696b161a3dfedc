//! Why a node is not protected, or why something of that protection stays, in words.

use std::fmt;

use maintenance_lease::{Error, MEDIK8S_LEASES};

use super::failure::cause;
use super::machine::{machine_in, named, tool_name};
use crate::error::ProtectionError;
use crate::text::escape;

impl fmt::Display for ProtectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::NoManagementContext => {
                "it reads opt-outs on Machines only; to set them, add --management-context with the context of their cluster"
            }
            Self::Connect(error) => &error.to_string(),
            Self::SlowPlugin { context, limit } => {
                let limit = limit.as_secs();
                &format!("the credential plugin of context {context} did not end in {limit}s")
            }
            Self::Silent { context } => {
                &format!("the cluster of context {context} did not answer a moment ago")
            }
            Self::NotInstalled { context, tool } => &format!(
                "the cluster of context {context} has no Machines of {}; name the context of its management cluster",
                tool_name(tool)
            ),
            Self::NoMachine { of, context } => &format!("there is no {}", machine_in(of, context)),
            Self::OfAnotherNode { of, context } => {
                &format!("{} does not name this node", machine_in(of, context))
            }
            Self::MachineGone => "its Machine does not exist any more",
            Self::EarlierMachine(of) => {
                let machine = named(&of.namespace, &of.name);
                &format!("the node's earlier {machine} still has opt-outs")
            }
            Self::NotNamed => "the Node does not name its Machine",
            Self::UnknownApi => "this release does not know its API",
            Self::OtherCluster { context, server } => &format!(
                "the Machine is not in context {context}; it was in the cluster at {server}"
            ),
            Self::NoContext { error, server } => {
                &format!("{error}; it was that of the cluster at {server}")
            }
            Self::Copied { .. } => "it was created again from a copy",
            Self::Medik8sLeaseTaken { holder } if holder.is_empty() => {
                "its Lease is taken, but does not say by whom"
            }
            Self::Medik8sLeaseTaken { holder } => &format!("{holder} holds its Lease"),
            Self::NoMedik8sNamespace => {
                &format!("there is no namespace {MEDIK8S_LEASES}; is medik8s installed?")
            }
            Self::LockEnded { is_hold: true } => {
                "another command has ended its hold, or has begun to; to protect the node, run `unhold`, then `hold`"
            }
            Self::LockEnded { is_hold: false } => {
                "its lock has ended, or an interrupted command has begun to end it; to label the Node, run `release`, then \
                 acquire it again"
            }
            Self::NodeGone => "the Node does not exist, or cannot be read",
            Self::Node(error) => &error.to_string(),
            Self::Request(error) => &match &**error {
                Error::Api(error) => cause(error),
                error => error.to_string(),
            },
            Self::TooSlow(limit) => {
                &format!("the API server did not answer in {}s", limit.as_secs())
            }
            Self::Interrupted => "interrupted",
        };
        f.write_str(&escape(words))
    }
}
