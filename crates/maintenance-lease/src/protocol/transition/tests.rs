//! What each verb makes of each state.

use super::*;
use crate::protocol::testing::{ADMIN, ALICE, BOB, OTHER_ADMIN, alice, held, secs};

const NONCE: Id = Id(70);

fn acquire(reentry: bool) -> Verb {
    Verb::Acquire {
        duration: 60,
        nonce: NONCE,
        reentry,
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
    let verb = acquire(false);
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
    let by_lock_id = Acquisition {
        holder: ALICE.id,
        ..lease.acquisition().expect("held")
    };
    for verb in [Verb::Renew { duration: None }, Verb::Release] {
        let now = Now::at(secs(110));
        let refused = decide(verb, alice(), Some(&lease), Some(by_lock_id), now);
        assert_eq!(refused, Err(Refusal::NotHolder), "{verb:?}");
    }
}

#[test]
fn a_renewal_is_never_the_same_as_the_last() {
    let lease = held(ALICE, 100, 60);
    let verb = Verb::Renew { duration: Some(60) };
    let Ok(Decision::Write(Write::Renew { at, duration, .. })) = on(verb, Some(&lease), 100) else {
        panic!("one's own");
    };
    assert_eq!((at, duration), (secs(100) + Span::TICK, 60));
}

#[test]
fn reentry_renews_the_same_acquisition() {
    let mine = held(ALICE, 100, 60);
    assert_eq!(on(acquire(true), Some(&mine), 120), renewed(&mine, 120, 60));
    assert_eq!(
        on(acquire(true), Some(&held(ADMIN, 1, 1)), 120),
        Ok(Decision::AlreadyHeld)
    );
    assert_eq!(
        on(acquire(true), Some(&held(BOB, 100, 60)), 120),
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

/// As where another tool wrote a length of years. An end that it stated and that is still to come stays.
#[test]
fn overlong_locks_are_not_renewed_for_as_long_again() {
    let renew = Verb::Renew { duration: None };
    for duration in [3601, HOLD_SECONDS] {
        let mine = held(ALICE, 100, duration);
        let after = 100 + duration + 100;
        assert_eq!(on(renew, Some(&mine), after), renewed(&mine, after, 3600));
    }
    let mine = held(ALICE, 100, 3600);
    assert_eq!(on(renew, Some(&mine), 200), renewed(&mine, 200, 3600));
    let years = held(ALICE, 100, 1_000_000);
    assert_eq!(on(renew, Some(&years), 200), renewed(&years, 200, 999_900));
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
    assert_eq!(confirmed(hold(true), &own, 120), taken);
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
fn the_lock_id_of_ones_own_hold_leads_to_the_verb_for_holds() {
    let hold = held(ADMIN, 0, HOLD_SECONDS);
    // A lock id has no holder: it is read as the caller's.
    let lock_id = hold.acquisition().map(|meant| Acquisition {
        holder: ALICE.id,
        ..meant
    });
    let on = |verb, seen: &Lease| decide(verb, alice(), Some(seen), lock_id, Now::at(secs(1)));
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
        acquire(true),
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
fn the_count_of_transitions_starts_again_at_its_maximum() {
    let mut lease = held(BOB, 1, 1);
    lease.transitions = i32::MAX as u32;
    assert_eq!(
        on(acquire(false), Some(&lease), 900),
        begun(ALICE.id, 900, 60, 0)
    );
}

#[test]
fn time_is_added_to_what_is_left_and_to_no_more_than_an_hour() {
    let extend = |by| Verb::Extend { by, end: None };
    let lease = held(ALICE, 100, 600);
    let duration = |verb, at| match on(verb, Some(&lease), at) {
        Ok(Decision::Write(Write::Renew { duration, .. })) => duration,
        other => panic!("{other:?}"),
    };
    assert_eq!(duration(extend(60), 100), 660);
    assert_eq!(duration(extend(60), 400), 360);
    // After the end of the lock, nothing can be added, even if others may not take it yet.
    assert_eq!(duration(extend(60), 702), 60);
    assert_eq!(duration(extend(60), 900), 60);
    assert_eq!(duration(extend(3_000), 100), 3_600);
    assert_eq!(
        on(extend(3_001), Some(&lease), 100),
        Err(Refusal::TooLong {
            left: Span::seconds(600),
            added: Span::seconds(3_001)
        })
    );
    assert_eq!(on(extend(60), None, 100), Err(Refusal::NotHeld));
    let bobs = held(BOB, 100, 600);
    assert_eq!(on(extend(60), Some(&bobs), 100), Err(Refusal::NotHolder));
    let hold = held(ADMIN, 100, 600);
    assert_eq!(on(extend(60), Some(&hold), 100), Err(Refusal::OwnHold));
}

#[test]
fn time_is_added_to_the_end_that_was_read_first() {
    let end_at = |renewed, duration, at| {
        let verb = Verb::Extend {
            by: 60,
            end: Some(secs(700)),
        };
        match on(verb, Some(&held(ALICE, renewed, duration)), at) {
            Ok(Decision::Write(Write::Renew { at, duration, .. })) => at + Span::seconds(duration),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(end_at(100, 600, 400), secs(760), "nothing was added yet");
    assert_eq!(end_at(300, 460, 400), secs(760), "it was added");
    assert_eq!(end_at(300, 600, 400), secs(900), "another added more");
    assert_eq!(end_at(100, 600, 800), secs(860), "it has expired since");
}

#[test]
fn a_renewal_does_not_move_an_end_earlier_that_no_duration_reaches() {
    let far = i32::MAX as u32 + 100;
    let lease = held(ALICE, far, 600);
    for verb in [Verb::Renew { duration: None }, acquire(true)] {
        let Ok(Decision::Write(Write::Renew { at, duration, .. })) = on(verb, Some(&lease), 10)
        else {
            panic!("a renewal");
        };
        assert_eq!((at, duration), (secs(far) + Span::TICK, 600), "{verb:?}");
    }
}
