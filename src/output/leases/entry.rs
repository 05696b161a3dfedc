//! An entry of the list.

use maintenance_lease::protocol::Instant;
use maintenance_lease::{AnyLease, Candidate};

use crate::words::leases::{candidate, purpose};

/// An entry of the list.
#[derive(Clone, Debug)]
pub(crate) enum LeaseEntry {
    Lease(Box<AnyLease>),
    /// A candidate for a Lease in coordinated leader election.
    Candidate(Candidate),
}

impl LeaseEntry {
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Self::Lease(any) => &any.namespace,
            Self::Candidate(candidate) => &candidate.namespace,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Lease(any) => any.name(),
            Self::Candidate(candidate) => &candidate.name,
        }
    }

    pub(super) fn lease(&self) -> Option<&AnyLease> {
        match self {
            Self::Lease(any) => Some(any),
            Self::Candidate(_) => None,
        }
    }

    pub(super) fn created(&self) -> Option<Instant> {
        match self {
            Self::Lease(any) => any.created,
            Self::Candidate(candidate) => candidate.created,
        }
    }

    /// When its holder acquired it. If that is not recorded, as for heartbeats, when the Lease was created.
    pub(super) fn since(&self) -> Option<Instant> {
        let held = self.lease().filter(|any| any.lease.holder().is_some());
        let acquired = held.and_then(|any| any.lease.acquired());
        acquired.map(Instant::from).or_else(|| self.created())
    }

    pub(super) fn renewed(&self) -> Option<Instant> {
        match self {
            Self::Lease(any) => any.lease.renewed().map(Instant::from),
            Self::Candidate(candidate) => candidate.renewed,
        }
    }

    pub(super) fn holder(&self) -> Option<&str> {
        self.lease()?.lease.holder()
    }

    /// The purpose in words; names are shown as in the object.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Lease(any) => purpose(any.purpose()),
            Self::Candidate(Candidate { lease, version, .. }) => {
                candidate(lease, version.as_deref())
            }
        }
    }
}
