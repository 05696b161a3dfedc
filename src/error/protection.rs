//! What can go wrong when a lock protects its node, or ends that protection.

use std::sync::Arc;
use std::time::Duration;

use connect::ConnectError;
use maintenance_lease::Error;
use other_tools::{MachineRecord, MachineRef};

/// Why something was not written on a Node, on its Machine or as its medik8s Lease, or was not removed there.
#[derive(Clone, Debug)]
pub(crate) enum ProtectionError {
    /// No management cluster was given.
    NoManagementContext,
    /// A management cluster can't be reached.
    Connect(ConnectError),
    /// The credential plugin of a context that only a record names did not end.
    SlowPlugin { context: String, limit: Duration },
    /// The cluster did not answer for another node.
    Silent { context: String },
    /// The cluster has no Machines of this tool.
    NotInstalled { context: String, tool: &'static str },
    /// There is no such Machine.
    NoMachine { of: MachineRef, context: String },
    /// The Machine is that of another node, or of none.
    OfAnotherNode { of: MachineRef, context: String },
    /// The Machine disappeared before it could be written.
    MachineGone,
    /// This earlier Machine of the node still has opt-outs.
    EarlierMachine(Box<MachineRecord>),
    /// The Node has no Machine of the tool.
    NotNamed,
    /// The record on the Node names an API that is not known.
    UnknownApi,
    /// The context does not lead to the recorded cluster, which has this URL.
    OtherCluster { context: String, server: String },
    /// The kubeconfig has no usable context for the recorded cluster, which has this URL.
    NoContext { error: ConnectError, server: String },
    /// The Machine was created from a copy, so others own what it has.
    Copied { context: String },
    /// Somebody else has the medik8s Lease. The holder may be empty.
    Medik8sLeaseTaken { holder: String },
    /// The namespace of the medik8s Leases does not exist.
    NoMedik8sNamespace,
    /// The lock has ended, or is being ended.
    LockEnded { is_hold: bool },
    /// The Node does not exist, or can't be read.
    NodeGone,
    /// The Node can't be read or written.
    Node(Arc<Error>),
    /// Another request failed.
    Request(Arc<Error>),
    /// It took longer than this.
    TooSlow(Duration),
    /// Ctrl-C.
    Interrupted,
}

impl ProtectionError {
    /// Nothing was written, and nothing will be.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Node(error) | Self::Request(error) => {
                !matches!(&**error, Error::Api(error) if error.leaves_writes_unknown())
            }
            _ => true,
        }
    }

    /// The user lacks a right.
    pub(crate) fn is_forbidden(&self) -> bool {
        match self {
            Self::Node(error) | Self::Request(error) => {
                matches!(&**error, Error::Api(error) if error.is_forbidden())
            }
            _ => false,
        }
    }
}

impl From<Error> for ProtectionError {
    fn from(error: Error) -> Self {
        Self::Request(Arc::new(error))
    }
}
