//! What a verb asks for, and what is decided on it: a write or a refusal.

use super::lease::{Acquisition, Version};
use super::names::Id;
use super::time::{Instant, Span};

/// The caller: the identity that acquires, and the one that the same caller holds under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The identity, which does not begin with `kubeadm`.
    pub identity: Id,
    /// `kubeadm:` and that identity: the caller as an administrator.
    pub hold_identity: Id,
}

/// The parameters of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidacy {
    /// The length of the lease, in seconds.
    pub duration: u32,
    /// The nonce to mark the acquisition with.
    pub nonce: Id,
    /// The version that the caller has seen unchanged for long enough to take the lease from its holder.
    pub unchanged: Option<Version>,
}

/// What the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Begin an acquisition.
    Acquire {
        /// Its length in seconds.
        duration: u32,
        /// The nonce to mark it with.
        nonce: Id,
        /// Take it if it is already the caller's: renew the same acquisition.
        reentry: bool,
    },
    /// Become the leader in an election on this Lease.
    Elect(Candidacy),
    /// Extend the caller's acquisition.
    Renew {
        /// The length from now in seconds; `None` keeps the one it has, up to [`LONGEST`](super::LONGEST).
        duration: Option<u32>,
    },
    /// Extend the caller's acquisition beyond its end.
    Extend {
        /// The time that is added to what is left, in seconds.
        by: u32,
        /// The end that was read first, once it was read: the time is added to it, however often the
        /// Lease is read again, because a write without an answer may have added it already.
        end: Option<Instant>,
    },
    /// Release the caller's acquisition.
    Release,
    /// Release somebody else's acquisition by force, as confirmed by the caller.
    ForceRelease,
    /// Hold as an administrator.
    Hold {
        /// The nonce to mark it with.
        nonce: Id,
        /// Its holder loses it, as confirmed by the caller. If that is the caller, this begins another acquisition.
        take_over: bool,
    },
    /// End an administrator's hold.
    Unhold {
        /// End somebody else's hold, as confirmed by the caller.
        another: bool,
    },
}

impl Verb {
    /// The length from now that it asks for, in seconds; `None`: another end, or none.
    #[must_use]
    pub(crate) const fn requested_duration(self) -> Option<u32> {
        match self {
            Self::Acquire { duration, .. } | Self::Elect(Candidacy { duration, .. }) => {
                Some(duration)
            }
            Self::Renew { duration } => duration,
            Self::Extend { .. }
            | Self::Release
            | Self::ForceRelease
            | Self::Hold { .. }
            | Self::Unhold { .. } => None,
        }
    }

    /// The same, with the acquisition that it begins marked by `nonce`, if it begins one.
    #[must_use]
    pub const fn with_nonce(self, nonce: Id) -> Self {
        match self {
            Self::Acquire {
                duration, reentry, ..
            } => Self::Acquire {
                duration,
                nonce,
                reentry,
            },
            Self::Elect(candidacy) => Self::Elect(Candidacy { nonce, ..candidacy }),
            Self::Hold { take_over, .. } => Self::Hold { nonce, take_over },
            Self::Renew { .. }
            | Self::Extend { .. }
            | Self::Release
            | Self::ForceRelease
            | Self::Unhold { .. } => self,
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Write this on the version that was seen, or create the Lease if it does not exist.
    Write(Write),
    /// It is free already.
    AlreadyFree,
    /// The caller's own hold covers it: nothing to write.
    AlreadyHeld,
}

/// The fields to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// A new acquisition: all five fields, and its nonce.
    Acquire {
        /// The new holder.
        holder: Id,
        /// `acquireTime` and `renewTime`.
        at: Instant,
        /// `leaseDurationSeconds`.
        duration: u32,
        /// `leaseTransitions`.
        transitions: u32,
        /// The acquisition's mark.
        nonce: Id,
    },
    /// The same acquisition, for longer, or with another reason.
    Renew {
        /// Which acquisition.
        of: Acquisition,
        /// `renewTime`.
        at: Instant,
        /// `leaseDurationSeconds`.
        duration: u32,
    },
    /// The lock is released.
    Release {
        /// Which acquisition ends.
        of: Acquisition,
        /// `renewTime`: never later than it was.
        renewed: Instant,
        /// When it was released.
        at: Instant,
    },
}

impl Write {
    /// Until when the written Lease is its holder's; `None` for a release.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        match *self {
            Self::Acquire { at, duration, .. } | Self::Renew { at, duration, .. } => {
                Some(at + Span::seconds(duration))
            }
            Self::Release { .. } => None,
        }
    }
}

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Somebody else holds it.
    Held,
    /// The same identity holds it already, which may be a colleague on a shared account.
    HeldByCaller,
    /// It expired, and only a free one is wanted.
    Expired,
    /// It expired while its Node was not ready, or cordoned, and the caller does not take such a lock.
    Unfinished {
        /// The Node's kubelet reports that it is ready.
        is_ready: bool,
        /// The Node is cordoned.
        is_cordoned: bool,
    },
    /// Somebody else holds it as an administrator.
    AdminHold,
    /// It is the caller's own hold; only another verb can end it.
    OwnHold,
    /// It is held, but not by the caller, who would have to be the holder.
    NotHolder,
    /// Nobody holds it: there is nothing to renew.
    NotHeld,
    /// It is a lease, not an administrator's hold.
    NotAHold,
    /// Another acquisition has replaced the intended one.
    ChangedHands,
    /// Coordinated leader election owns the Lease.
    Elected,
    /// The Lease is being deleted.
    Deleting,
    /// The Lease lacks the labels of the caller's: it is another application's.
    Foreign,
    /// With the time that is added to it, it would last longer than [`LONGEST`](super::LONGEST).
    TooLong {
        /// What is left of it.
        left: Span,
        /// What would be added.
        added: Span,
    },
}

impl Refusal {
    /// The same refusal, if the lock turns out to be the caller's own.
    #[must_use]
    pub const fn of_own(self) -> Self {
        match self {
            Self::Held => Self::HeldByCaller,
            Self::AdminHold => Self::OwnHold,
            other => other,
        }
    }
}
