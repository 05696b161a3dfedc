//! The outcome of a write that got no answer.
//!
//! A write that timed out, or whose connection broke, may have landed, may have failed, and may still land: one
//! landed 13 s after its client gave up. Only another read, compared with the write, can tell.

use super::decision::Write;
use super::lease::Lease;
use crate::bugs::{self, Bug};

/// What a later read shows about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteOutcome {
    /// The Lease is as the write would have made it.
    Landed,
    /// It took effect, and somebody has ended that acquisition since.
    Ended,
    /// The Lease changed without it, so the write can't land any more.
    Failed,
    /// Nothing changed: the write may still land.
    Unknown,
}

/// Judges `write`, sent on the state `on` (`None`: it was to create the Lease), by the Lease read
/// afterwards.
///
/// The nonce alone is no proof: a copy of the Lease has it too, and so does every renewal of the acquisition.
/// So the uid must be the same, and a renewal's time exactly the one that was sent.
#[must_use]
pub fn judge(write: &Write, on: Option<&Lease>, seen: Option<&Lease>) -> WriteOutcome {
    let Some(lease) = seen else {
        return match on {
            None => WriteOutcome::Unknown,
            Some(_) => WriteOutcome::Failed,
        };
    };
    if let Some(on) = on {
        // An earlier state, also of an earlier Lease, shows nothing of what came after it.
        if lease.version <= on.version {
            return if bugs::active(Bug::UnchangedProvesFailure) {
                WriteOutcome::Failed
            } else {
                WriteOutcome::Unknown
            };
        }
        if lease.uid != on.uid {
            return WriteOutcome::Failed;
        }
    }
    let landed = match *write {
        Write::Acquire { nonce, .. }
            if lease.ended == Some(nonce) && !bugs::active(Bug::BrokenAcquisitionRepeated) =>
        {
            return WriteOutcome::Ended;
        }
        Write::Acquire { holder, nonce, .. } => {
            lease.holder.map(|holder| holder.id) == Some(holder)
                && (lease.nonce == Some(nonce) || bugs::active(Bug::NoNonce))
        }
        Write::Renew { of, at, .. } => {
            lease.acquisition() == Some(of)
                && (lease.renewed == Some(at) || bugs::active(Bug::NonceProvesRenewal))
        }
        Write::Release { of, .. } => lease.acquisition() != Some(of),
    };
    if landed {
        WriteOutcome::Landed
    } else {
        WriteOutcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::lease::{Holder, Version};
    use crate::protocol::names::Id;
    use crate::protocol::testing::{ALICE, BOB, held, secs};

    fn moved_on(lease: &Lease) -> Lease {
        Lease {
            version: Version(lease.version.0 + 1),
            ..*lease
        }
    }

    fn acquire() -> Write {
        Write::Acquire {
            holder: ALICE.id,
            at: secs(200),
            duration: 60,
            transitions: 2,
            nonce: Id(77),
        }
    }

    #[test]
    fn an_unchanged_lease_settles_nothing() {
        let on = held(BOB, 100, 60);
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&on)),
            WriteOutcome::Unknown
        );
        assert_eq!(judge(&acquire(), None, None), WriteOutcome::Unknown);
    }

    #[test]
    fn a_read_of_an_earlier_state_settles_nothing() {
        let earlier = held(BOB, 100, 60);
        let on = moved_on(&earlier);
        let release = Write::Release {
            of: on.acquisition().expect("held"),
            renewed: secs(100),
            at: secs(130),
        };
        let of_another_lease = Lease {
            uid: Id(99),
            ..earlier
        };
        for write in [acquire(), release] {
            for seen in [earlier, of_another_lease] {
                assert_eq!(judge(&write, Some(&on), Some(&seen)), WriteOutcome::Unknown);
            }
        }
    }

    #[test]
    fn an_acquisition_succeeded_if_the_same_lease_has_our_holder_and_nonce() {
        let on = held(BOB, 100, 60);
        let mut seen = moved_on(&held(ALICE, 200, 60));
        seen.nonce = Some(Id(77));
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&seen)),
            WriteOutcome::Landed
        );
        assert_eq!(judge(&acquire(), None, Some(&seen)), WriteOutcome::Landed);
        let copy = Lease {
            uid: Id(99),
            ..seen
        };
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&copy)),
            WriteOutcome::Failed
        );
        let other = moved_on(&held(ALICE, 200, 60));
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&other)),
            WriteOutcome::Failed
        );
        assert_eq!(judge(&acquire(), Some(&on), None), WriteOutcome::Failed);
    }

    #[test]
    fn an_acquisition_that_succeeded_and_was_ended_differs_from_a_failed_one() {
        let on = held(BOB, 100, 60);
        let released = Lease {
            holder: None,
            nonce: None,
            ended: Some(Id(77)),
            ..moved_on(&on)
        };
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&released)),
            WriteOutcome::Ended
        );
        assert_eq!(
            judge(&acquire(), None, Some(&released)),
            WriteOutcome::Ended
        );
        let taken_since = Lease {
            holder: Some(BOB),
            ..released
        };
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&taken_since)),
            WriteOutcome::Ended
        );
        let other = Lease {
            ended: Some(Id(76)),
            ..released
        };
        assert_eq!(
            judge(&acquire(), Some(&on), Some(&other)),
            WriteOutcome::Failed
        );
    }

    #[test]
    fn a_renewal_succeeded_only_if_the_lease_has_its_exact_time() {
        let on = held(ALICE, 100, 60);
        let write = Write::Renew {
            of: on.acquisition().expect("held"),
            at: secs(130),
            duration: 60,
        };
        let annotated = moved_on(&on);
        assert_eq!(
            judge(&write, Some(&on), Some(&annotated)),
            WriteOutcome::Failed
        );
        let renewed = Lease {
            renewed: Some(secs(130)),
            ..annotated
        };
        assert_eq!(
            judge(&write, Some(&on), Some(&renewed)),
            WriteOutcome::Landed
        );
    }

    #[test]
    fn a_release_succeeded_if_the_lease_is_free_or_acquired_anew() {
        let on = held(ALICE, 100, 60);
        let write = Write::Release {
            of: on.acquisition().expect("held"),
            renewed: secs(100),
            at: secs(130),
        };
        let mut seen = moved_on(&on);
        assert_eq!(judge(&write, Some(&on), Some(&seen)), WriteOutcome::Failed);
        seen.holder = None;
        assert_eq!(judge(&write, Some(&on), Some(&seen)), WriteOutcome::Landed);
        seen.holder = Some(Holder {
            id: BOB.id,
            admin: false,
        });
        assert_eq!(judge(&write, Some(&on), Some(&seen)), WriteOutcome::Landed);
    }
}
