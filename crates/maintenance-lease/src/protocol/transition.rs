//! The verbs: from the observed state to a write or a refusal.
//!
//! This module decides everything and executes nothing. A [`Write`] belongs to the resource version that
//! the decision was based on; the caller sends it as a compare-and-swap on that version.

use super::elect::{Candidacy, elect};
use super::lease::{Acquisition, Holder, Lease};
use super::names::Id;
use super::state::{LONGEST_SECONDS, State, state};
use super::time::{Instant, Now, Span};
use crate::bugs::{self, Bug};

/// The length that a hold writes for clients that don't know the rule about administrators.
pub const HOLD_SECONDS: u32 = i32::MAX as u32;

/// The count after which `leaseTransitions` starts over, because the server refuses larger ones.
const LAST_TRANSITION: u32 = i32::MAX as u32;

/// The caller: the identity that acquires, and the one that the same caller holds under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The identity, which does not begin with `kubeadm`.
    pub identity: Id,
    /// `kubeadm:` and that identity: the caller as an administrator.
    pub hold_identity: Id,
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
        /// Take it only if it is free: [`State::Expired`] is refused.
        free_only: bool,
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
    /// The same, with the acquisition that it begins marked by `nonce`, if it begins one.
    #[must_use]
    pub const fn with_nonce(self, nonce: Id) -> Self {
        match self {
            Self::Acquire {
                duration,
                reentry,
                free_only,
                ..
            } => Self::Acquire {
                duration,
                nonce,
                reentry,
                free_only,
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

/// Decides `verb` for `caller`, on the Lease that was seen (`None`: there is none) at `now`.
///
/// `meant` is the acquisition that was first read, that was confirmed, or that has the given lock id.
/// Verbs that change an existing acquisition change no other. A take-over requires `meant`: if somebody
/// acquired a free Lease in the meantime, nobody has confirmed that acquisition.
///
/// # Errors
/// The [`Refusal`] that applies.
pub fn decide(
    verb: Verb,
    caller: Caller,
    seen: Option<&Lease>,
    meant: Option<Acquisition>,
    now: Now,
) -> Result<Decision, Refusal> {
    if let Some(lease) = seen {
        if lease.foreign {
            return Err(Refusal::Foreign);
        }
        if lease.elected {
            return Err(Refusal::Elected);
        }
        if lease.deleting {
            return Err(Refusal::Deleting);
        }
    }
    let held_state = seen.and_then(|lease| Some((lease, lease.holder?)));
    let confirmed = meant.is_some();
    if let Some(meant) = meant.filter(|_| !is_unchecked(verb)) {
        match held_state {
            Some((lease, _)) if lease.acquisition() == Some(meant) => {}
            Some((lease, holder)) if is_under_another_name(lease, holder, meant) => match verb {
                Verb::Renew { .. } | Verb::Extend { .. } | Verb::Release => {
                    return Err(own_hold_or(caller, holder, Refusal::NotHolder));
                }
                _ => return Err(Refusal::ChangedHands),
            },
            Some(_) => return Err(Refusal::ChangedHands),
            None if matches!(verb, Verb::Renew { .. } | Verb::Extend { .. }) => {
                return Err(Refusal::NotHeld);
            }
            None => {}
        }
    }
    match verb {
        Verb::Acquire {
            duration,
            nonce,
            reentry,
            free_only,
        } => {
            let begin = begin(seen, caller.identity, duration, nonce, now);
            let Some((lease, holder)) = held_state else {
                return Ok(begin);
            };
            match state(seen, now) {
                State::Free => Ok(begin),
                State::AdminHold if holder.id != caller.hold_identity => Err(Refusal::AdminHold),
                State::AdminHold if reentry => Ok(Decision::AlreadyHeld),
                State::AdminHold => Err(Refusal::OwnHold),
                State::Expired { .. } if free_only => Err(Refusal::Expired),
                State::Expired { .. } => Ok(begin),
                State::Held { .. } if holder.id != caller.identity => Err(Refusal::Held),
                State::Held { .. } if reentry => Ok(extend(lease, holder, duration, now)),
                State::Held { .. } => Err(Refusal::HeldByCaller),
            }
        }
        Verb::Elect(candidacy) => elect(candidacy, caller, seen, now),
        Verb::Renew { duration } => {
            let (lease, holder) = held_state.ok_or(Refusal::NotHeld)?;
            owned(caller, holder)?;
            Ok(extend(
                lease,
                holder,
                // Another tool may have asked for years.
                duration.unwrap_or(lease.duration.clamp(1, LONGEST_SECONDS)),
                now,
            ))
        }
        Verb::Extend { by, end } => {
            let (lease, holder) = held_state.ok_or(Refusal::NotHeld)?;
            owned(caller, holder)?;
            let end = end.or(lease.end()).unwrap_or(now.latest);
            let left = (end - now.latest).max(Span::ZERO);
            let added = Span::seconds(by);
            let whole = Span::micros(left.as_micros().saturating_add(added.as_micros()));
            match u32::try_from(whole.ceil_seconds()) {
                Ok(duration @ ..=LONGEST_SECONDS) => Ok(extend(lease, holder, duration, now)),
                _ => Err(Refusal::TooLong { left, added }),
            }
        }
        Verb::Release => {
            let Some((lease, holder)) = held_state else {
                return Ok(Decision::AlreadyFree);
            };
            if !is_unchecked(verb) {
                owned(caller, holder)?;
            }
            Ok(end(lease, holder, now))
        }
        Verb::ForceRelease => {
            let Some((lease, holder)) = held_state else {
                return Ok(Decision::AlreadyFree);
            };
            if holder.admin {
                return Err(own_hold_or(caller, holder, Refusal::AdminHold));
            }
            if holder.id != caller.identity && !confirmed {
                return Err(Refusal::ChangedHands);
            }
            Ok(end(lease, holder, now))
        }
        Verb::Hold { nonce, take_over } => {
            let begin = begin(seen, caller.hold_identity, HOLD_SECONDS, nonce, now);
            let take_over = take_over && confirmed;
            let Some((lease, holder)) = held_state else {
                return Ok(begin);
            };
            match state(seen, now) {
                State::Free | State::Expired { .. } => Ok(begin),
                State::Held { .. } if holder.id == caller.identity || take_over => Ok(begin),
                State::Held { .. } => Err(Refusal::Held),
                State::AdminHold if take_over => Ok(begin),
                State::AdminHold if holder.id == caller.hold_identity => {
                    Ok(extend(lease, holder, HOLD_SECONDS, now))
                }
                State::AdminHold => Err(Refusal::AdminHold),
            }
        }
        Verb::Unhold { another } => {
            let Some((lease, holder)) = held_state else {
                return Ok(Decision::AlreadyFree);
            };
            if !holder.admin {
                return Err(Refusal::NotAHold);
            }
            if holder.id != caller.hold_identity && !(another && confirmed) {
                return Err(Refusal::AdminHold);
            }
            Ok(end(lease, holder, now))
        }
    }
}

/// Whether a seeded bug makes `verb` overlook which acquisition it was meant for.
fn is_unchecked(verb: Verb) -> bool {
    match verb {
        Verb::Release => bugs::active(Bug::ReleaseUnchecked),
        Verb::ForceRelease
        | Verb::Hold {
            take_over: true, ..
        }
        | Verb::Unhold { another: true } => bugs::active(Bug::ConfirmationCarriedOver),
        _ => false,
    }
}

/// Whether the intended acquisition is there under another holder name. A lock id does not contain the
/// holder, and does not distinguish a lease from a hold.
fn is_under_another_name(lease: &Lease, holder: Holder, meant: Acquisition) -> bool {
    let under_its_own = Acquisition {
        holder: holder.id,
        ..meant
    };
    lease.acquisition() == Some(under_its_own)
}

/// Refuses to touch, as a holder, what the caller does not hold as one.
fn owned(caller: Caller, holder: Holder) -> Result<(), Refusal> {
    if holder.id == caller.identity {
        Ok(())
    } else {
        Err(own_hold_or(caller, holder, Refusal::NotHolder))
    }
}

fn own_hold_or(caller: Caller, holder: Holder, otherwise: Refusal) -> Refusal {
    if holder.id == caller.hold_identity {
        Refusal::OwnHold
    } else {
        otherwise
    }
}

fn begin(seen: Option<&Lease>, holder: Id, duration: u32, nonce: Id, now: Now) -> Decision {
    Decision::Write(Write::Acquire {
        holder,
        at: now.latest,
        duration,
        transitions: next_transition(seen),
        nonce,
    })
}

pub(super) fn next_transition(seen: Option<&Lease>) -> u32 {
    match seen {
        Some(lease) if lease.transitions >= LAST_TRANSITION => 0,
        Some(lease) => lease.transitions + 1,
        None => 1,
    }
}

/// A renewal until `duration` from now, or until the present end if that is later: it never moves the end
/// to an earlier time.
///
/// It always changes `renewTime`, even if the clock went back since the last renewal. Contenders that
/// rely on their own clock must see that the holder is alive.
fn extend(lease: &Lease, holder: Holder, duration: u32, now: Now) -> Decision {
    let from = lease.renewed.or(lease.acquired);
    let stated_at = |at: Instant| {
        lease
            .end()
            .map_or(0, |end| (end - at).ceil_seconds().max(0))
    };
    let at = match from {
        Some(from) if from == now.latest => from + Span::TICK,
        // No duration reaches from the present to this end.
        Some(from)
            if from != Instant::UNREADABLE && stated_at(now.latest) > HOLD_SECONDS.into() =>
        {
            from + Span::TICK
        }
        _ => now.latest,
    };
    let stated = u32::try_from(stated_at(at)).map_or(HOLD_SECONDS, |end| end.min(HOLD_SECONDS));
    Decision::Write(Write::Renew {
        of: acquisition_of(lease, holder),
        at,
        duration: duration.max(stated),
    })
}

fn end(lease: &Lease, holder: Holder, now: Now) -> Decision {
    let at = now.latest;
    Decision::Write(Write::Release {
        of: acquisition_of(lease, holder),
        renewed: lease.renewed.map_or(at, |renewed| renewed.min(at)),
        at,
    })
}

fn acquisition_of(lease: &Lease, holder: Holder) -> Acquisition {
    Acquisition {
        uid: lease.uid,
        holder: holder.id,
        transitions: lease.transitions,
        nonce: lease.nonce,
    }
}

#[cfg(test)]
mod tests;
