//! The verbs: from the observed state to a write or a refusal.
//!
//! This module decides everything and executes nothing. A [`Write`] belongs to the resource version that
//! the decision was based on; the caller sends it as a compare-and-swap on that version.

use super::decision::{Caller, Decision, Refusal, Verb, Write};
use super::elect::elect;
use super::lease::{Acquisition, Holder, Lease, next_transition};
use super::names::Id;
use super::state::{LONGEST_SECONDS, State, longest_extension, state};
use super::time::{Instant, Now, Span};
use crate::bugs::{self, Bug};

/// The length that a hold writes for clients that don't know the rule about administrators.
pub const HOLD_SECONDS: u32 = i32::MAX as u32;

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
                Ok(duration) if added <= longest_extension(left) => {
                    Ok(extend(lease, holder, duration, now))
                }
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
