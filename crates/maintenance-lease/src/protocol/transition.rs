//! The verbs: from the state seen to what to write, or to a refusal.
//!
//! Everything is decided here and nothing is carried out. A [`Write`] belongs to the resource
//! version that the decision was taken on; the caller sends it as a compare-and-swap on that
//! version.

use super::elect::{Candidacy, elect};
use super::lease::{Acquisition, Holder, Lease};
use super::names::Id;
use super::state::{State, state};
use super::time::{Instant, Now, Span};
use crate::bugs::{self, Bug};

/// The length that a hold writes for clients that don't know the rule about administrators.
pub const HOLD_SECONDS: u32 = i32::MAX as u32;

/// The count after which `leaseTransitions` starts over: the server refuses more.
const LAST_TRANSITION: u32 = i32::MAX as u32;

/// Who decides: the identity that acquires, and the one that the same caller holds under.
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
        /// Take it where it is the caller's already: a renewal of the same acquisition.
        reentry: bool,
        /// Take it only where nobody left it behind: [`State::Expired`] is refused.
        free_only: bool,
    },
    /// Become the leader of those who elect one on this Lease.
    Elect(Candidacy),
    /// Extend the caller's acquisition.
    Renew {
        /// The length from now in seconds; `None` keeps the one it has.
        duration: Option<u32>,
    },
    /// Give the caller's acquisition back.
    Release,
    /// Break another's acquisition, which the caller has confirmed.
    ForceRelease,
    /// Hold as an administrator.
    Hold {
        /// The nonce to mark it with.
        nonce: Id,
        /// Another holder is meant to lose it, which the caller has confirmed.
        take_over: bool,
    },
    /// End an administrator's hold.
    Unhold {
        /// Another's hold is meant, which the caller has confirmed.
        another: bool,
    },
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Write this on the version that was seen, or create the Lease where there is none.
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
    /// Nobody holds it any more.
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
    /// Another administrator holds it.
    AdminHold,
    /// The caller's own hold: another verb ends it.
    OwnHold,
    /// Held, but not by the caller, whose lease or right it would have to be.
    NotHolder,
    /// Nobody holds it: there is nothing to renew.
    NotHeld,
    /// It is a lease, not an administrator's hold.
    NotAHold,
    /// Another acquisition stands there than the one that was meant.
    ChangedHands,
    /// Coordinated leader election owns the Lease.
    Elected,
    /// The Lease is being deleted.
    Deleting,
    /// The Lease lacks the labels of the caller's: it is another application's.
    Foreign,
}

/// Decides `verb` for `caller`, on the Lease that was seen (`None`: there is none) at `now`.
///
/// `meant` is the acquisition that was first read, confirmed or given by token; verbs that touch an
/// existing acquisition touch no other. Breaking another's acquisition takes one that is meant: what
/// took the place of a free Lease meanwhile is nothing that anybody confirmed.
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
    let standing = seen.and_then(|lease| Some((lease, lease.holder?)));
    let confirmed = meant.is_some();
    if let Some(meant) = meant.filter(|_| !is_unchecked(verb)) {
        match standing {
            Some((lease, _)) if lease.acquisition() == Some(meant) => {}
            Some((lease, holder)) if is_under_another_name(lease, holder, meant) => match verb {
                Verb::Renew { .. } | Verb::Release => {
                    return Err(own_hold_or(caller, holder, Refusal::NotHolder));
                }
                _ => return Err(Refusal::ChangedHands),
            },
            Some(_) => return Err(Refusal::ChangedHands),
            None if matches!(verb, Verb::Renew { .. }) => return Err(Refusal::NotHeld),
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
            let Some((lease, holder)) = standing else {
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
            let (lease, holder) = standing.ok_or(Refusal::NotHeld)?;
            owned(caller, holder)?;
            Ok(extend(
                lease,
                holder,
                duration.unwrap_or(lease.duration.max(1)),
                now,
            ))
        }
        Verb::Release => {
            let Some((lease, holder)) = standing else {
                return Ok(Decision::AlreadyFree);
            };
            if !is_unchecked(verb) {
                owned(caller, holder)?;
            }
            Ok(end(lease, holder, now))
        }
        Verb::ForceRelease => {
            let Some((lease, holder)) = standing else {
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
            let Some((lease, holder)) = standing else {
                return Ok(begin);
            };
            match state(seen, now) {
                State::Free | State::Expired { .. } => Ok(begin),
                State::Held { .. } if holder.id == caller.identity || take_over => Ok(begin),
                State::Held { .. } => Err(Refusal::Held),
                State::AdminHold if holder.id == caller.hold_identity => {
                    Ok(extend(lease, holder, HOLD_SECONDS, now))
                }
                State::AdminHold if take_over => Ok(begin),
                State::AdminHold => Err(Refusal::AdminHold),
            }
        }
        Verb::Unhold { another } => {
            let Some((lease, holder)) = standing else {
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

/// Whether the very acquisition that is meant stands there, under another name: a token does not say
/// whose it is, nor tell a lease from a hold.
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

/// A renewal that reaches `duration` from now, or as far as the Lease reaches already: it never
/// moves the end to an earlier time.
///
/// It always changes `renewTime`, also where the clock went back since the last: who waits by their own
/// eyes alone must see that the holder is alive.
fn extend(lease: &Lease, holder: Holder, duration: u32, now: Now) -> Decision {
    let at = match lease.renewed {
        Some(renewed) if renewed == now.latest => renewed + Span::TICK,
        _ => now.latest,
    };
    let stated = lease
        .end()
        .map_or(0, |end| (end - at).ceil_seconds())
        .clamp(0, i64::from(HOLD_SECONDS));
    let stated = u32::try_from(stated).unwrap_or(HOLD_SECONDS);
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
mod tests {
    use super::*;
    use crate::protocol::testing::{ADMIN, ALICE, BOB, OTHER_ADMIN, alice, held, secs};

    const NONCE: Id = Id(70);

    fn acquire(reentry: bool, free_only: bool) -> Verb {
        Verb::Acquire {
            duration: 60,
            nonce: NONCE,
            reentry,
            free_only,
        }
    }

    fn on(verb: Verb, seen: Option<&Lease>, now: u32) -> Result<Decision, Refusal> {
        decide(verb, alice(), seen, None, Now::at(secs(now)))
    }

    fn confirmed(verb: Verb, seen: &Lease, now: u32) -> Result<Decision, Refusal> {
        let meant = seen.acquisition();
        decide(verb, alice(), Some(seen), meant, Now::at(secs(now)))
    }

    fn begun(holder: Id, at: u32, duration: u32, transitions: u32) -> Result<Decision, Refusal> {
        Ok(Decision::Write(Write::Acquire {
            holder,
            at: secs(at),
            duration,
            transitions,
            nonce: NONCE,
        }))
    }

    fn renewed(lease: &Lease, at: u32, duration: u32) -> Result<Decision, Refusal> {
        Ok(Decision::Write(Write::Renew {
            of: lease.acquisition().expect("held"),
            at: secs(at),
            duration,
        }))
    }

    fn released(lease: &Lease, renewed: u32, at: u32) -> Result<Decision, Refusal> {
        Ok(Decision::Write(Write::Release {
            of: lease.acquisition().expect("held"),
            renewed: secs(renewed),
            at: secs(at),
        }))
    }

    #[test]
    fn acquire_takes_free_and_expired_and_nothing_else() {
        let free = Lease {
            holder: None,
            ..held(BOB, 100, 60)
        };
        let bobs = held(BOB, 100, 60);
        let mine = held(ALICE, 100, 60);
        let verb = acquire(false, false);
        assert_eq!(on(verb, None, 200), begun(ALICE.id, 200, 60, 1));
        assert_eq!(on(verb, Some(&free), 200), begun(ALICE.id, 200, 60, 2));
        assert_eq!(on(verb, Some(&bobs), 163), Err(Refusal::Held));
        assert_eq!(on(verb, Some(&bobs), 164), begun(ALICE.id, 164, 60, 2));
        assert_eq!(on(verb, Some(&mine), 120), Err(Refusal::HeldByCaller));
        assert_eq!(on(verb, Some(&mine), 164), begun(ALICE.id, 164, 60, 2));
        assert_eq!(
            on(verb, Some(&held(OTHER_ADMIN, 1, 1)), 99_999),
            Err(Refusal::AdminHold)
        );
        assert_eq!(
            on(verb, Some(&held(ADMIN, 1, 1)), 99_999),
            Err(Refusal::OwnHold)
        );
    }

    #[test]
    fn an_acquisition_under_another_name_is_not_ours_and_did_not_change_hands() {
        let lease = held(BOB, 100, 60);
        let by_token = Acquisition {
            holder: ALICE.id,
            ..lease.acquisition().expect("held")
        };
        for verb in [Verb::Renew { duration: None }, Verb::Release] {
            let now = Now::at(secs(110));
            let refused = decide(verb, alice(), Some(&lease), Some(by_token), now);
            assert_eq!(refused, Err(Refusal::NotHolder), "{verb:?}");
        }
    }

    #[test]
    fn a_renewal_is_never_the_same_as_the_last() {
        let lease = held(ALICE, 100, 60);
        let verb = Verb::Renew { duration: Some(60) };
        let Ok(Decision::Write(Write::Renew { at, duration, .. })) = on(verb, Some(&lease), 100)
        else {
            panic!("one's own");
        };
        assert_eq!((at, duration), (secs(100) + Span::TICK, 60));
    }

    #[test]
    fn free_only_refuses_what_somebody_left_behind() {
        assert_eq!(
            on(acquire(false, true), Some(&held(BOB, 100, 60)), 164),
            Err(Refusal::Expired)
        );
    }

    #[test]
    fn reentry_renews_the_same_acquisition() {
        let mine = held(ALICE, 100, 60);
        assert_eq!(
            on(acquire(true, false), Some(&mine), 120),
            renewed(&mine, 120, 60)
        );
        assert_eq!(
            on(acquire(true, false), Some(&held(ADMIN, 1, 1)), 120),
            Ok(Decision::AlreadyHeld)
        );
        assert_eq!(
            on(acquire(true, false), Some(&held(BOB, 100, 60)), 120),
            Err(Refusal::Held)
        );
    }

    #[test]
    fn renew_keeps_the_length_and_never_shortens() {
        let mine = held(ALICE, 100, 60);
        let renew = |duration| Verb::Renew { duration };
        assert_eq!(on(renew(None), Some(&mine), 120), renewed(&mine, 120, 60));
        assert_eq!(
            on(renew(Some(300)), Some(&mine), 120),
            renewed(&mine, 120, 300)
        );
        assert_eq!(
            on(renew(Some(5)), Some(&mine), 120),
            renewed(&mine, 120, 40)
        );
        assert_eq!(on(renew(None), Some(&mine), 900), renewed(&mine, 900, 60));
    }

    #[test]
    fn renew_and_release_touch_only_ones_own() {
        let bobs = held(BOB, 100, 60);
        let hold = held(ADMIN, 100, 60);
        let renew = Verb::Renew { duration: None };
        assert_eq!(on(renew, Some(&bobs), 120), Err(Refusal::NotHolder));
        assert_eq!(on(renew, None, 120), Err(Refusal::NotHeld));
        assert_eq!(on(renew, Some(&hold), 120), Err(Refusal::OwnHold));
        assert_eq!(on(Verb::Release, Some(&bobs), 120), Err(Refusal::NotHolder));
        assert_eq!(on(Verb::Release, Some(&hold), 120), Err(Refusal::OwnHold));
        assert_eq!(on(Verb::Release, None, 120), Ok(Decision::AlreadyFree));
    }

    #[test]
    fn release_never_moves_the_renewal_forward() {
        let mine = held(ALICE, 100, 60);
        assert_eq!(
            on(Verb::Release, Some(&mine), 120),
            released(&mine, 100, 120)
        );
        assert_eq!(on(Verb::Release, Some(&mine), 90), released(&mine, 90, 90));
    }

    #[test]
    fn force_breaks_a_lease_but_no_hold() {
        let bobs = held(BOB, 100, 60);
        assert_eq!(
            confirmed(Verb::ForceRelease, &bobs, 120),
            released(&bobs, 100, 120)
        );
        assert_eq!(
            confirmed(Verb::ForceRelease, &held(OTHER_ADMIN, 1, 1), 120),
            Err(Refusal::AdminHold)
        );
    }

    #[test]
    fn hold_takes_what_is_free_or_ones_own_and_more_only_by_take_over() {
        let hold = |take_over| Verb::Hold {
            nonce: NONCE,
            take_over,
        };
        let theirs = held(OTHER_ADMIN, 1, 1);
        let bobs = held(BOB, 100, 60);
        let own = held(ADMIN, 100, HOLD_SECONDS);
        let taken = begun(ADMIN.id, 120, HOLD_SECONDS, 2);
        assert_eq!(
            on(hold(false), None, 120),
            begun(ADMIN.id, 120, HOLD_SECONDS, 1)
        );
        assert_eq!(on(hold(false), Some(&held(ALICE, 100, 60)), 120), taken);
        assert_eq!(on(hold(false), Some(&bobs), 120), Err(Refusal::Held));
        assert_eq!(confirmed(hold(true), &bobs, 120), taken);
        assert_eq!(on(hold(false), Some(&theirs), 120), Err(Refusal::AdminHold));
        assert_eq!(confirmed(hold(true), &theirs, 120), taken);
        assert_eq!(
            on(hold(false), Some(&own), 120),
            renewed(&own, 120, HOLD_SECONDS)
        );
    }

    #[test]
    fn unhold_ends_holds_only() {
        let unhold = |another| Verb::Unhold { another };
        let own = held(ADMIN, 100, HOLD_SECONDS);
        let theirs = held(OTHER_ADMIN, 1, 1);
        assert_eq!(on(unhold(false), None, 120), Ok(Decision::AlreadyFree));
        assert_eq!(on(unhold(false), Some(&own), 120), released(&own, 100, 120));
        assert_eq!(
            on(unhold(false), Some(&theirs), 120),
            Err(Refusal::AdminHold)
        );
        assert_eq!(
            confirmed(unhold(true), &theirs, 120),
            released(&theirs, 1, 120)
        );
        assert_eq!(
            on(unhold(true), Some(&held(BOB, 100, 60)), 120),
            Err(Refusal::NotAHold)
        );
    }

    #[test]
    fn nothing_is_broken_that_nobody_confirmed() {
        let bobs = held(BOB, 100, 60);
        let theirs = held(OTHER_ADMIN, 1, 1);
        let take_over = Verb::Hold {
            nonce: NONCE,
            take_over: true,
        };
        let unhold = Verb::Unhold { another: true };
        assert_eq!(
            on(Verb::ForceRelease, Some(&bobs), 120),
            Err(Refusal::ChangedHands)
        );
        assert_eq!(on(take_over, Some(&bobs), 120), Err(Refusal::Held));
        assert_eq!(on(take_over, Some(&theirs), 120), Err(Refusal::AdminHold));
        assert_eq!(on(unhold, Some(&theirs), 120), Err(Refusal::AdminHold));
    }

    #[test]
    fn the_token_of_ones_own_hold_leads_to_the_verb_for_holds() {
        let hold = held(ADMIN, 0, HOLD_SECONDS);
        // A token has no holder: it is read as the caller's.
        let token = hold.acquisition().map(|meant| Acquisition {
            holder: ALICE.id,
            ..meant
        });
        let on = |verb, seen: &Lease| decide(verb, alice(), Some(seen), token, Now::at(secs(1)));
        for verb in [Verb::Release, Verb::Renew { duration: None }] {
            assert_eq!(on(verb, &hold), Err(Refusal::OwnHold), "{verb:?}");
            let next = Lease {
                transitions: 2,
                ..hold
            };
            assert_eq!(on(verb, &next), Err(Refusal::ChangedHands), "{verb:?}");
            let others = held(OTHER_ADMIN, 0, HOLD_SECONDS);
            assert_eq!(on(verb, &others), Err(Refusal::NotHolder), "{verb:?}");
        }
    }

    #[test]
    fn another_acquisition_than_the_one_meant_is_never_touched() {
        let first = held(ALICE, 100, 60);
        let later = Lease {
            transitions: 2,
            nonce: Some(Id(61)),
            ..first
        };
        let meant = first.acquisition();
        for verb in [
            Verb::Renew { duration: None },
            Verb::Release,
            Verb::ForceRelease,
            Verb::Unhold { another: true },
        ] {
            let now = Now::at(secs(120));
            assert_eq!(
                decide(verb, alice(), Some(&later), meant, now),
                Err(Refusal::ChangedHands),
                "{verb:?}"
            );
        }
        let gone = decide(Verb::Release, alice(), None, meant, Now::at(secs(120)));
        assert_eq!(gone, Ok(Decision::AlreadyFree));
    }

    #[test]
    fn leases_of_others_of_an_election_or_in_deletion_are_left_alone() {
        let foreign = Lease {
            foreign: true,
            ..held(ALICE, 1, 1)
        };
        let elected = Lease {
            elected: true,
            ..held(ALICE, 1, 1)
        };
        let deleting = Lease {
            deleting: true,
            ..held(ALICE, 1, 1)
        };
        for verb in [
            acquire(true, false),
            Verb::Renew { duration: None },
            Verb::Release,
            Verb::ForceRelease,
            Verb::Unhold { another: true },
        ] {
            assert_eq!(on(verb, Some(&foreign), 900), Err(Refusal::Foreign));
            assert_eq!(on(verb, Some(&elected), 900), Err(Refusal::Elected));
            assert_eq!(on(verb, Some(&deleting), 900), Err(Refusal::Deleting));
        }
    }

    #[test]
    fn the_count_of_transitions_starts_over_where_the_server_would_refuse_more() {
        let mut lease = held(BOB, 1, 1);
        lease.transitions = i32::MAX as u32;
        assert_eq!(
            on(acquire(false, false), Some(&lease), 900),
            begun(ALICE.id, 900, 60, 0)
        );
    }
}
