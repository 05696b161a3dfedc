//! Why a part of the protection of a node was not written, or not removed.

use std::sync::Arc;

use maintenance_lease::{ApiError, Error};

use crate::machine::MachineRef;
use crate::machine_record::MachineRecord;
use crate::management::ConnectFailure;

/// Why something was not written on a Node, on its Machine or as its medik8s Lease, or was not removed there.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// No management cluster was given.
    NoManagementContext,
    /// A management cluster can't be reached.
    Connect(ConnectFailure),
    /// The cluster has no Machines of this tool.
    NotInstalled {
        /// The context of the cluster.
        context: String,
        /// The tool.
        tool: &'static str,
    },
    /// There is no such Machine.
    NoMachine {
        /// Which one.
        of: MachineRef,
        /// The context of the cluster.
        context: String,
    },
    /// The Machine is that of another node, or of none.
    OfAnotherNode {
        /// Which one.
        of: MachineRef,
        /// The context of its cluster.
        context: String,
    },
    /// The Machine disappeared before it could be written.
    MachineGone,
    /// This earlier Machine of the node still has opt-outs.
    EarlierMachine(Box<MachineRecord>),
    /// The Node has no Machine of the tool.
    NotNamed,
    /// The record on the Node names an API that is not known.
    UnknownApi,
    /// The context does not lead to the recorded cluster.
    OtherCluster {
        /// The context.
        context: String,
        /// The URL of the recorded cluster.
        server: String,
    },
    /// The kubeconfig has no usable context for the recorded cluster.
    NoContext {
        /// Why not.
        error: ConnectFailure,
        /// The URL of the recorded cluster.
        server: String,
    },
    /// The Machine was created from a copy, so others own what it has.
    Copied {
        /// The context of its cluster.
        context: String,
    },
    /// Somebody else has the medik8s Lease.
    Medik8sLeaseTaken {
        /// Who, if the Lease says so; otherwise empty.
        holder: String,
    },
    /// The namespace of the medik8s Leases does not exist.
    NoMedik8sNamespace,
    /// The lock has ended, or is being ended.
    LockEnded {
        /// Whether it was a hold.
        is_hold: bool,
    },
    /// The Node does not exist, or can't be read.
    NodeGone,
    /// The Node can't be read or written.
    Node(Arc<Error>),
    /// Another request failed.
    Request(Arc<Error>),
}

impl WriteError {
    /// The Node can't be read or written.
    pub(crate) fn of_node(error: Error) -> Self {
        Self::Node(Arc::new(error))
    }

    /// Nothing was written, and nothing will be.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        !self.api().is_some_and(ApiError::leaves_writes_unknown)
    }

    /// The user lacks a right.
    #[must_use]
    pub fn is_missing_right(&self) -> bool {
        self.api().is_some_and(ApiError::is_missing_right)
    }

    /// The server stored something other than what was written: an admission webhook may have changed it.
    #[must_use]
    pub fn is_altered(&self) -> bool {
        matches!(self.api(), Some(ApiError::Altered))
    }

    /// An admission policy of ours refused it.
    pub(crate) fn is_by_our_policy(&self) -> bool {
        self.api()
            .is_some_and(|error| error.policy_code().is_some())
    }

    fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Node(error) | Self::Request(error) => match &**error {
                Error::Api(error) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Request(Arc::new(error))
    }
}
