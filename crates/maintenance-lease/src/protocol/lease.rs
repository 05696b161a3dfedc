//! A Lease as the rules see it: small, copyable, without strings.

use super::names::Id;
use super::time::{Instant, Span};

/// A node's maintenance Lease, reduced to what the rules compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// `metadata.uid`: a different uid means a different Lease, whatever else is equal.
    pub uid: Id,
    /// `metadata.resourceVersion`: the write that produced this state.
    pub version: Version,
    /// `spec.holderIdentity`; an empty one is nobody.
    pub holder: Option<Holder>,
    /// `spec.acquireTime`: when this acquisition began.
    pub acquired: Option<Instant>,
    /// `spec.renewTime`: the last acquisition or renewal.
    pub renewed: Option<Instant>,
    /// `spec.leaseDurationSeconds`; a missing one counts as 0.
    pub duration: u32,
    /// `spec.leaseTransitions`: how many acquisitions there were.
    pub transitions: u32,
    /// The nonce of the acquisition, if a client that follows these rules wrote it.
    pub nonce: Option<Id>,
    /// The nonce of the last acquisition that ended by a release or a take-over, if a client that follows
    /// these rules ended it.
    pub ended: Option<Id>,
    /// `spec.strategy` is set: coordinated leader election owns this Lease.
    pub elected: bool,
    /// `metadata.deletionTimestamp` is set: it is being deleted.
    pub deleting: bool,
    /// It lacks the labels of the caller's Leases, so it belongs to another application.
    pub foreign: bool,
}

/// A resource version. The API server hands out numbers that grow with every write; comparing them
/// is documented since Kubernetes 1.35.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Who holds a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The holder identity as written.
    pub id: Id,
    /// It begins with `kubeadm`, if that rule applies: an administrator's hold.
    pub admin: bool,
}

/// One acquisition of one Lease, which a release, a renewal or a confirmation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acquisition {
    /// The Lease's uid.
    pub uid: Id,
    /// Who acquired.
    pub holder: Id,
    /// The count at this acquisition.
    pub transitions: u32,
    /// The acquisition's nonce, if it has one.
    pub nonce: Option<Id>,
}

impl Lease {
    /// The acquisition in this Lease; `None` if nobody holds it.
    #[must_use]
    pub fn acquisition(&self) -> Option<Acquisition> {
        self.holder.map(|holder| Acquisition {
            uid: self.uid,
            holder: holder.id,
            transitions: self.transitions,
            nonce: self.nonce,
        })
    }

    /// The end that the Lease states, without any margin: the last renewal plus the duration, or the
    /// acquisition if there was no renewal. `None` if it has neither time.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        self.renewed
            .or(self.acquired)
            .map(|from| from + Span::seconds(self.duration))
    }
}

/// The count after which `leaseTransitions` starts over, because the server refuses larger ones.
const LAST_TRANSITION: u32 = i32::MAX as u32;

/// The count of an acquisition that follows the Lease that was seen.
pub(super) fn next_transition(seen: Option<&Lease>) -> u32 {
    match seen {
        Some(lease) if lease.transitions >= LAST_TRANSITION => 0,
        Some(lease) => lease.transitions + 1,
        None => 1,
    }
}
