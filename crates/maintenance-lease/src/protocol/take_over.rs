//! Which verbs take a lock from its holder, and what has to be confirmed.

use super::decision::{Caller, Verb};
use super::lease::Lease;
use super::time::Now;
use super::transition::decide;

/// Whether `verb` would take over somebody else's lock. It is refused until the acquisition that was seen
/// is confirmed.
///
/// It is computed with [`decide`], so the question and the permission always agree.
#[must_use]
pub fn breaks(verb: Verb, caller: Caller, seen: &Lease, now: Now) -> bool {
    let allowed = |meant| decide(verb, caller, Some(seen), meant, now).is_ok();
    !allowed(None) && allowed(seen.acquisition())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::names::Id;
    use crate::protocol::testing::{ADMIN, ALICE, BOB, OTHER_ADMIN, alice, held, secs};

    const TAKE_OVER: Verb = Verb::Hold {
        nonce: Id(70),
        take_over: true,
    };
    const UNHOLD: Verb = Verb::Unhold { another: true };

    /// Which of forced release, take-over and unhold of somebody else's hold would apply to `seen`.
    fn broken_by(seen: &Lease, at: u32) -> [bool; 3] {
        [Verb::ForceRelease, TAKE_OVER, UNHOLD]
            .map(|verb| breaks(verb, alice(), seen, Now::at(secs(at))))
    }

    #[test]
    fn it_is_the_lock_of_another_and_of_the_kind_that_the_verb_is_for() {
        let bobs = held(BOB, 100, 60);
        assert_eq!(broken_by(&bobs, 120), [true, true, false]);
        // Anyone may acquire an expired lock, but to release it for its holder needs a confirmation.
        assert_eq!(broken_by(&bobs, 900), [true, false, false]);
        let theirs = held(OTHER_ADMIN, 100, 60);
        assert_eq!(broken_by(&theirs, 900), [false, true, true]);
    }

    #[test]
    fn own_and_free_locks_are_not_taken_over() {
        let free = Lease {
            holder: None,
            ..held(BOB, 100, 60)
        };
        for seen in [held(ALICE, 100, 60), held(ADMIN, 100, 60), free] {
            assert_eq!(broken_by(&seen, 120), [false; 3], "{seen:?}");
        }
    }

    #[test]
    fn requests_refused_anyway_need_no_confirmation() {
        let elected = Lease {
            elected: true,
            ..held(BOB, 100, 60)
        };
        let deleting = Lease {
            deleting: true,
            ..held(OTHER_ADMIN, 100, 60)
        };
        for seen in [elected, deleting] {
            assert_eq!(broken_by(&seen, 120), [false; 3], "{seen:?}");
        }
    }

    #[test]
    fn verbs_that_are_for_ones_own_break_nothing() {
        let acquire = Verb::Acquire {
            duration: 60,
            nonce: Id(70),
            reentry: true,
        };
        let hold = Verb::Hold {
            nonce: Id(70),
            take_over: false,
        };
        let unhold = Verb::Unhold { another: false };
        let renew = Verb::Renew { duration: None };
        for verb in [acquire, renew, Verb::Release, hold, unhold] {
            for seen in [held(BOB, 100, 60), held(OTHER_ADMIN, 100, 60)] {
                assert!(
                    !breaks(verb, alice(), &seen, Now::at(secs(120))),
                    "{verb:?} {seen:?}"
                );
            }
        }
    }
}
