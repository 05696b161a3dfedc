//! What a verb did, or why it did nothing.

use std::fmt;
use std::time::Duration;

use crate::cluster::error::ApiError;
use crate::cluster::nodes::NodeRow;
use crate::lease::NodeLease;
use crate::options::InvalidOption;
use crate::protocol::{BootInstant, Instant, LockId, Now, Refusal, Span, State, longest_extension};
use crate::repository::{Repository, Subject};

/// What a verb did to a node's Lease.
#[derive(Clone, Debug)]
pub struct Change {
    /// The node.
    pub node: String,
    /// What was done.
    pub done: Done,
    /// The Node, if the verb read it and had permission to.
    pub row: Option<NodeRow>,
    /// The Lease before the verb; `None`: it did not exist.
    pub before: Option<NodeLease>,
    /// Its state before.
    pub state_before: State,
    /// The Lease now; `None`: it does not exist.
    pub lease: Option<NodeLease>,
    /// Until when a holder may believe that it holds the lock, by the boot clock, counted from before the
    /// write was sent; `None` if nothing is held.
    pub deadline: Option<BootInstant>,
    /// The fencing number of a new acquisition: the resource version of the write that made it. If that
    /// write's answer was lost, the version of the read that showed the result. It rises with every
    /// acquisition, except after etcd was restored from a backup.
    pub fencing: Option<u64>,
    /// What else was created, or could not be checked.
    pub side_effects: Vec<SideEffect>,
    /// The duration that the verb asked for, in seconds; `None`: the one that the Lease has, or another end.
    pub(crate) requested: Option<u32>,
    /// How often a pause of the machine had been suspected by then. If the number has risen since, the
    /// boot clock may have stood still.
    pub(crate) suspected_pauses: u64,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A new acquisition began.
    Acquired,
    /// The same acquisition continues.
    Renewed,
    /// The caller's own hold already covers it; nothing was written.
    AlreadyHeld,
    /// It is now free.
    Released,
    /// It was already free; nothing was written.
    AlreadyFree,
}

/// A side effect, or something that could not be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SideEffect {
    /// The namespace was missing and was created.
    NamespaceCreated,
    /// The Lease was missing and was created.
    LeaseCreated,
    /// No permission to read Nodes. The node may not exist, and its Lease is not garbage-collected with
    /// it.
    NodeUnreadable,
    /// The write's answer was lost; another read showed that it had taken effect.
    AnswerLost,
}

impl Change {
    /// Until when the Lease is its holder's: its [`end`](NodeLease::end).
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.lease.as_ref()?.end()
    }

    /// The lock id of the current acquisition.
    #[must_use]
    pub fn lock_id(&self) -> Option<LockId> {
        self.lease.as_ref()?.lock_id()
    }

    /// Whether the Node or its Lease says that the node is fenced. The Lease may be a new one, and only some verbs read the
    /// Node.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let lease = self.lease.as_ref();
        lease.is_some_and(NodeLease::is_fenced) || self.row.as_ref().is_some_and(|row| row.fenced)
    }

    /// The requested duration, if a renewal left the end where it was because more than that is left.
    #[must_use]
    pub fn unused_duration(&self) -> Option<Duration> {
        let written = self.lease.as_ref()?.duration_seconds();
        let requested = self.requested.filter(|&requested| requested < written)?;
        (self.done == Done::Renewed).then(|| Duration::from_secs(requested.into()))
    }

    /// How much can be added to the lock: it may last for an hour from now.
    #[must_use]
    pub fn longest_extension(&self, now: Now) -> Option<Span> {
        let left = self.lease.as_ref()?.state(now).left_at_least(now)?;
        Some(longest_extension(left))
    }
}

/// A refusal, with the holder, the reason, the start and the expiry.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What the lock is for.
    pub subject: Subject,
    /// Its name.
    pub node: String,
    /// The rule that caused the refusal.
    pub refusal: Refusal,
    /// The Lease that caused the refusal; `None`: it does not exist.
    pub lease: Option<NodeLease>,
    /// The Lease's state then.
    pub state: State,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = format_args!("{}/{}", self.subject, self.node);
        let lease = self.subject.lease(&self.node);
        let holder = self
            .lease
            .as_ref()
            .and_then(NodeLease::holder)
            .map_or_else(|| "nobody".to_owned(), |holder| self.subject.holder(holder));
        match self.refusal {
            Refusal::Held => write!(f, "{lock} is held by {holder}"),
            Refusal::HeldByCaller => write!(f, "{lock} is already held by {holder}"),
            Refusal::Expired => write!(f, "{lock} has an expired lease of {holder}"),
            Refusal::Unfinished { .. } => write!(
                f,
                "{lock} has an expired lease of {holder}, and the node is not ready or cordoned"
            ),
            Refusal::AdminHold => write!(f, "{lock} is on hold by {holder}"),
            Refusal::OwnHold => write!(f, "{lock} is already on hold by {holder}"),
            Refusal::NotHolder => write!(f, "{lock} is held by {holder}, not by you"),
            Refusal::NotHeld => write!(f, "{lock} is free"),
            Refusal::NotAHold => write!(f, "{lock} is not on hold, but held by {holder}"),
            Refusal::ChangedHands => {
                write!(f, "{lock} was acquired again by {holder}")
            }
            Refusal::Elected => write!(
                f,
                "{lease} has a strategy and belongs to coordinated leader election"
            ),
            Refusal::Deleting => write!(f, "{lease} is being deleted"),
            Refusal::Foreign => write!(
                f,
                "{lease} lacks your labels and belongs to another application"
            ),
            Refusal::TooLong { left, added } => write!(
                f,
                "{lock} has {} s left, and with {} s more it would last longer than 1 h",
                left.ceil_seconds(),
                added.ceil_seconds()
            ),
        }
    }
}

/// Why a verb did nothing, or has an unknown outcome. A new variant is a breaking change: callers match all of
/// them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules refuse the verb.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// There is no such Node.
    #[error("Error from server (NotFound): nodes \"{0}\" not found")]
    NodeNotFound(String),
    /// The Node is being deleted, and its Lease with it.
    #[error("node/{0} is being deleted")]
    NodeDeleting(String),
    /// The user lacks a permission.
    #[error("{source}")]
    MissingRight {
        /// The permission, as `verb resource`, and the namespace or cluster.
        right: Right,
        /// The server's message.
        source: ApiError,
    },
    /// This namespace of the Leases is being deleted, so no Lease can be created in it.
    #[error("namespace {0} is being deleted: no Lease can be created in it")]
    NamespaceTerminating(String),
    /// This namespace of the node locks does not exist, and the caller
    /// [does not want it created](crate::Maintenance::set_creates_namespace).
    #[error("namespace {0} does not exist")]
    NamespaceMissing(String),
    /// A write was sent and its outcome could not be determined in time: it may have taken effect, or may
    /// still do so.
    #[error(
        "unknown whether {subject}/{node} was {intent}: the write may still take effect ({source})"
    )]
    Unknown {
        /// What the lock is for.
        subject: Subject,
        /// Its name.
        node: String,
        /// What would have happened to it, as a participle.
        intent: &'static str,
        /// The last failure.
        source: ApiError,
    },
    /// Others changed the Lease at every attempt; nothing was written.
    #[error(
        "{subject}/{node} was not {intent}: its Lease kept changing ({conflicts} conflicts in {}s)",
        .waited.as_secs()
    )]
    Contended {
        /// What the lock is for.
        subject: Subject,
        /// Its name.
        node: String,
        /// What would have happened to it, as a participle.
        intent: &'static str,
        /// The number of attempts.
        conflicts: u32,
        /// For how long it was tried.
        waited: Duration,
    },
    /// The lock was lost during the work under it. Nothing is written any more.
    #[error("{0}")]
    Lost(std::sync::Arc<crate::keeper::Lost>),
    /// An option is invalid; nothing was sent.
    #[error(transparent)]
    Invalid(#[from] InvalidOption),
    /// A request failed, and nothing was written.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// A permission on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Such as `patch`.
    pub verb: &'static str,
    /// Such as `leases.coordination.k8s.io`.
    pub resource: &'static str,
    /// `None` for cluster-wide resources.
    pub namespace: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

impl Right {
    pub(crate) fn on_leases(verb: &'static str, repository: &Repository) -> Self {
        Self {
            verb,
            resource: "leases.coordination.k8s.io",
            namespace: Some(repository.namespace().to_owned()),
        }
    }

    /// The permission to `verb` nodes.
    #[must_use]
    pub const fn on_nodes(verb: &'static str) -> Self {
        Self {
            verb,
            resource: "nodes",
            namespace: None,
        }
    }

    /// Names the permission behind a refusal of the server or of a policy. Other errors stay as they are.
    #[must_use]
    pub fn explain(self, source: ApiError) -> Error {
        let on_locks = |verb| Self::on_leases(verb, &Repository::default());
        let right = match source.policy_code() {
            Some("maint-hold-right") => on_locks("hold"),
            Some("maint-unhold-right" | "maint-live-lock") => on_locks("takeover"),
            _ if source.is_missing_right() => self,
            _ => return Error::Api(source),
        };
        Error::MissingRight { right, source }
    }
}
