//! What `doctor` finds, as data.

use maintenance_lease::ClockWarning;
use maintenance_lease::protocol::Span;
use policies::Enforcement;
use schemars::JsonSchema;
use serde::Serialize;

/// The annotation of kured's DaemonSet that has its lock.
pub(crate) const KURED_LOCK: &str = "weave.works/kured-node-lock";

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CheckupLevel")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Optional, or not checked.
    Note,
    /// Locks, or their policies, do not work as they should.
    Problem,
}

impl Level {
    /// The word that begins the line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CheckupName")]
pub(crate) enum Check {
    Server,
    User,
    Rights,
    Namespace,
    Policies,
    NodePolicy,
    LeasePolicy,
    Release,
    Leases,
    HeldLabels,
    OtherLocks,
    Clock,
}

impl Check {
    /// The name in the line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::User => "user",
            Self::Rights => "rights",
            Self::Namespace => "namespace",
            Self::Policies => "policies",
            Self::NodePolicy => "node policy",
            Self::LeasePolicy => "lease policy",
            Self::Release => "release",
            Self::Leases => "leases",
            Self::HeldLabels => "held labels",
            Self::OtherLocks => "other locks",
            Self::Clock => "clock",
        }
    }
}

/// What a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    User,
    Rights,
    Namespaces,
    Policies,
    Leases,
    RepairedLeases,
    Nodes,
    KuredLock,
    Medik8sLeases,
    Metrics,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    Server {
        version: String,
        place: String,
    },
    User {
        api_user: String,
        holder: String,
    },
    /// The user lacks these permissions.
    MissingRights(Vec<String>),
    /// The user may lock nodes, and has these rights of the lease policy.
    Rights {
        of_policy: Vec<&'static str>,
    },
    NamespaceDeleting,
    NamespaceMissing,
    Namespace,
    /// How far the clocks differ, if they do.
    Clock(Option<ClockWarning>),
    /// What a policy does, whether it refused a wrong write, and how many broken rules the API server has counted.
    /// `None`: that was not checked.
    Policy {
        mode: Enforcement,
        refuses: Option<bool>,
        broken: Option<u64>,
    },
    /// Nobody may see the mode, but this user may see whether a wrong write is refused.
    PolicyUnread {
        refuses: Option<bool>,
    },
    NoAdmission,
    /// These objects are not those of this release.
    OtherRelease(Vec<String>),
    SameRelease,
    /// Leases without managedFields.
    Untracked {
        nodes: Vec<String>,
        is_denied: bool,
    },
    Repaired(Vec<String>),
    Leases(usize),
    /// The nodes on hold past the expected end: who holds them, and for how long.
    Overdue(Vec<(String, String, Span)>),
    /// Nodes with the held label or opt-outs of a lock that has ended or expired.
    LeftOver(Vec<String>),
    /// What was left on these Nodes was removed.
    Removed(Vec<String>),
    /// It was not.
    NotRemoved {
        nodes: Vec<String>,
        why: String,
    },
    /// The nodes whose locks ask for keys that are not on the Nodes.
    WithoutKeys(Vec<String>),
    /// They were set.
    KeysSet(Vec<String>),
    /// They were not.
    KeysNotSet {
        nodes: Vec<String>,
        why: String,
    },
    Labels(usize),
    /// No other tool holds a lock of its own.
    NoOtherLock,
    /// The nodes for which kured holds its lock, and since when.
    KuredLocks(Vec<(String, Option<Span>)>),
    /// The nodes for which operators of medik8s hold a Lease, and which operator it is.
    Medik8sLeases(Vec<(String, String)>),
    /// This could not be read.
    Unread {
        what: Source,
        is_forbidden: bool,
        error: String,
    },
}
