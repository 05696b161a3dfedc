//! The write loop, step by step.

use super::*;
use crate::protocol::testing::{ADMIN, ALICE, BOB, alice, held, secs};
use crate::protocol::time::{Instant, Now};

const ACQUIRE: Verb = Verb::Acquire {
    duration: 60,
    nonce: Id(0),
    reentry: false,
};

/// Boot clock and server's time agree, to make the cases easy to read.
fn at(seconds: u32) -> Clocks {
    Clocks {
        boot: boot(seconds),
        server: Now::at(secs(seconds)),
    }
}

fn boot(seconds: u32) -> BootInstant {
    BootInstant::from_micros(secs(seconds).as_micros())
}

/// The machine was paused, and no answer has come since.
fn unbounded(seconds: u32) -> Clocks {
    Clocks {
        server: Now {
            bounded: false,
            ..Now::at(secs(seconds))
        },
        ..at(seconds)
    }
}

fn acquiring() -> WriteLoop {
    WriteLoop::new(ACQUIRE, alice(), None)
}

fn nonce(number: u32) -> Id {
    Id(1_000 + number)
}

fn sent(step: Step) -> Attempt {
    match step {
        Step::Send(attempt) => attempt,
        other => panic!("{other:?}"),
    }
}

fn done(step: Step) -> (Write, BootInstant) {
    match step {
        Step::Done(Finished::Landed { write, deadline }) => (write, deadline),
        other => panic!("{other:?}"),
    }
}

/// What the server has once `attempt` landed.
fn after(attempt: &Attempt) -> Lease {
    let on = attempt.on.unwrap_or(Lease {
        holder: None,
        nonce: None,
        version: Version(0),
        ..held(ALICE, 0, 0)
    });
    let version = Version(on.version.0 + 1);
    match attempt.write {
        Write::Acquire {
            at,
            duration,
            transitions,
            nonce,
            ..
        } => Lease {
            version,
            holder: Some(ALICE),
            acquired: Some(at),
            renewed: Some(at),
            duration,
            transitions,
            nonce: Some(nonce),
            ..on
        },
        Write::Renew { at, duration, .. } => Lease {
            version,
            renewed: Some(at),
            duration,
            ..on
        },
        Write::Release { renewed, .. } => Lease {
            version,
            holder: None,
            renewed: Some(renewed),
            duration: 1,
            nonce: None,
            ended: on.nonce,
            ..on
        },
    }
}

fn free() -> Lease {
    Lease {
        holder: None,
        nonce: None,
        ..held(BOB, 10, 1)
    }
}

/// The Lease after a release by force.
fn forced(lease: &Lease) -> Lease {
    Lease {
        version: Version(lease.version.0 + 1),
        holder: None,
        ended: lease.nonce,
        nonce: None,
        duration: 1,
        ..*lease
    }
}

#[test]
fn a_stored_lock_counts_from_before_it_was_sent() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    let (write, deadline) = done(steps.answered(&after(&attempt), nonce(2), at(105)));
    assert_eq!((write, deadline), (attempt.write, boot(160)));
}

#[test]
fn a_copy_carries_the_present_time_and_the_same_nonce() {
    let mut steps = acquiring();
    let first = sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.unanswered();
    let second = sent(steps.read(Some(&free()), nonce(2), at(110)));
    let Write::Acquire { at, nonce, .. } = second.write else {
        panic!("{second:?}");
    };
    assert_eq!((at, nonce), (secs(110), self::nonce(1)));
    assert_eq!(second.on, first.on);
}

#[test]
fn no_copy_of_a_renewal_is_an_acquisition() {
    let verb = Verb::Acquire {
        duration: 60,
        nonce: Id(0),
        reentry: true,
    };
    let mut steps = WriteLoop::new(verb, alice(), None);
    let own = held(ALICE, 100, 60);
    let first = sent(steps.read(Some(&own), nonce(1), at(110)));
    assert!(matches!(first.write, Write::Renew { .. }));
    steps.unanswered();
    // It has ended by now, and a new acquisition would need a mark of its own.
    let second = sent(steps.read(Some(&own), nonce(2), at(200)));
    assert_eq!(second.write, first.write);
    steps.unanswered();
    let third = sent(steps.read(Some(&after(&first)), nonce(3), at(201)));
    assert!(matches!(third.write, Write::Acquire { nonce, .. } if nonce == self::nonce(3)));
}

#[test]
fn belief_runs_from_the_copy_that_landed() {
    for (landed, deadline) in [(0, 160), (1, 170)] {
        let mut steps = acquiring();
        let first = sent(steps.read(Some(&free()), nonce(1), at(100)));
        steps.unanswered();
        let second = sent(steps.read(Some(&free()), nonce(2), at(110)));
        steps.unanswered();
        let lease = after(&[first, second][landed]);
        let told = done(steps.read(Some(&lease), nonce(3), at(115)));
        assert_eq!(told.1, boot(deadline), "copy {landed}");
    }
}

#[test]
fn a_refused_write_succeeded_if_a_copy_of_it_was_stored() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    // Something on the way sent it twice, and told of the second time.
    steps.conflicted();
    let (_, deadline) = done(steps.read(Some(&after(&attempt)), nonce(2), at(101)));
    assert_eq!(deadline, boot(160));
}

#[test]
fn a_refused_copy_settles_no_other() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.unanswered();
    sent(steps.read(Some(&free()), nonce(2), at(101)));
    steps.declined();
    assert!(steps.is_unknown());
    done(steps.read(Some(&after(&attempt)), nonce(3), at(102)));
}

#[test]
fn a_write_of_another_settles_it_and_the_rules_decide_again() {
    let mut steps = acquiring();
    sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.unanswered();
    let bobs = Lease {
        version: Version(9),
        ..held(BOB, 100, 60)
    };
    let step = steps.read(Some(&bobs), nonce(2), at(101));
    assert_eq!(step, Step::Refused(Refusal::Held));
    let annotated = Lease {
        version: Version(9),
        ..free()
    };
    let mut steps = acquiring();
    sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.conflicted();
    let again = sent(steps.read(Some(&annotated), nonce(2), at(101)));
    assert_eq!(again.on, Some(annotated));
    assert!(matches!(again.write, Write::Acquire { nonce, .. } if nonce == self::nonce(2)));
}

#[test]
fn an_acquisition_that_landed_and_was_broken_is_not_made_again() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.unanswered();
    let step = steps.read(Some(&forced(&after(&attempt))), nonce(2), at(101));
    assert_eq!(step, Step::Ended);
}

#[test]
fn success_leaves_a_third_of_the_duration() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    let lease = after(&attempt);
    done(acquiring_again(&attempt).answered(&lease, nonce(2), at(140)));
    let renewal = sent(steps.answered(&lease, nonce(2), at(141)));
    assert!(matches!(renewal.write, Write::Renew { at, duration: 60, .. } if at == secs(141)));
    assert!(steps.has_landed());
    let (write, deadline) = done(steps.answered(&after(&renewal), nonce(3), at(142)));
    assert_eq!((write, deadline), (attempt.write, boot(201)));
}

fn acquiring_again(attempt: &Attempt) -> WriteLoop {
    let mut steps = acquiring();
    let seen = attempt.on;
    assert_eq!(sent(steps.read(seen.as_ref(), nonce(1), at(100))), *attempt);
    steps
}

#[test]
fn a_lock_that_ended_before_it_was_known_is_acquired_again() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.unanswered();
    let lease = after(&attempt);
    let again = sent(steps.read(Some(&lease), nonce(2), at(164)));
    assert_eq!(again.on, Some(lease));
    assert!(matches!(again.write, Write::Acquire { nonce, .. } if nonce == self::nonce(2)));
    done(steps.answered(&after(&again), nonce(3), at(165)));
}

#[test]
fn an_unanswered_acquisition_that_was_ended_is_not_repeated() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.unanswered();
    let lease = after(&attempt);
    sent(steps.read(Some(&lease), nonce(2), at(164)));
    steps.conflicted();
    assert_eq!(
        steps.read(Some(&forced(&lease)), nonce(3), at(165)),
        Step::Ended
    );
}

#[test]
fn after_a_pause_only_a_later_read_counts_and_belief_ends_by_the_servers_time() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    steps.require_check();
    let lease = after(&attempt);
    assert_eq!(steps.answered(&lease, nonce(2), unbounded(101)), Step::Read);
    assert_eq!(
        steps.read(Some(&lease), nonce(2), unbounded(101)),
        Step::Read
    );
    // The boot clock missed 20 s.
    let paused = Clocks {
        boot: boot(102),
        server: Now::at(secs(122)),
    };
    let (_, deadline) = done(steps.read(Some(&lease), nonce(2), paused));
    assert_eq!(deadline, boot(140));
}

#[test]
fn nothing_is_written_before_the_servers_time_is_bounded() {
    let mut steps = acquiring();
    for _ in 0..3 {
        let step = steps.read(Some(&free()), nonce(1), unbounded(100));
        assert_eq!(step, Step::Read);
    }
    sent(steps.read(Some(&free()), nonce(1), at(100)));
}

#[test]
fn nothing_is_reported_before_an_answer_since_the_pause() {
    let own_hold = held(ADMIN, 10, 60);
    let verb = Verb::Acquire {
        duration: 60,
        nonce: Id(0),
        reentry: true,
    };
    for (verb, seen) in [(verb, own_hold), (Verb::Release, free())] {
        let mut steps = WriteLoop::new(verb, alice(), None);
        let step = steps.read(Some(&seen), nonce(1), unbounded(100));
        assert_eq!(step, Step::Read, "{verb:?}");
        let step = steps.read(Some(&seen), nonce(1), at(100));
        assert!(matches!(step, Step::Done(_)), "{step:?}");
    }
}

#[test]
fn a_wide_time_range_is_read_again_and_the_latest_time_written() {
    let wide = Clocks {
        server: Now::between(secs(100), secs(110)),
        ..at(100)
    };
    let mut steps = acquiring();
    assert_eq!(steps.read(Some(&free()), nonce(1), wide), Step::Read);
    let attempt = sent(steps.read(Some(&free()), nonce(1), wide));
    assert!(matches!(attempt.write, Write::Acquire { at, .. } if at == secs(110)));
    let mut steps = WriteLoop::new(Verb::Release, alice(), None);
    sent(steps.read(Some(&held(ALICE, 90, 60)), nonce(1), wide));
}

#[test]
fn a_release_is_for_the_acquisition_that_was_read_first() {
    let mut steps = WriteLoop::new(Verb::Release, alice(), None);
    sent(steps.read(Some(&held(ALICE, 100, 60)), nonce(1), at(110)));
    steps.conflicted();
    let newer = Lease {
        version: Version(2),
        renewed: Some(secs(109)),
        ..held(ALICE, 100, 60)
    };
    sent(steps.read(Some(&newer), nonce(2), at(110)));
    steps.unanswered();
    let mine_again = Lease {
        version: Version(4),
        transitions: 2,
        nonce: Some(nonce(9)),
        ..newer
    };
    let (write, _) = done(steps.read(Some(&mine_again), nonce(3), at(111)));
    assert!(
        matches!(write, Write::Release { .. }),
        "it was released, and acquired again"
    );
}

#[test]
fn a_create_that_is_unknown_is_sent_again_and_one_that_landed_is_recognized() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(None, nonce(1), at(100)));
    assert_eq!(attempt.on, None);
    steps.unanswered();
    sent(steps.read(None, nonce(2), at(101)));
    steps.conflicted();
    done(steps.read(Some(&after(&attempt)), nonce(3), at(102)));
}

#[test]
fn an_answer_with_other_fields_is_no_success() {
    let mut steps = acquiring();
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    let altered = Lease {
        holder: Some(BOB),
        ..after(&attempt)
    };
    assert_eq!(steps.answered(&altered, nonce(2), at(101)), Step::Altered);
    assert!(steps.is_unknown());
}

#[test]
fn a_hold_has_no_end_to_come_near() {
    let verb = Verb::Hold {
        nonce: Id(0),
        take_over: false,
    };
    let mut steps = WriteLoop::new(verb, alice(), None);
    let attempt = sent(steps.read(Some(&free()), nonce(1), at(100)));
    let hold = Lease {
        holder: Some(ADMIN),
        renewed: Some(Instant::from_micros(0)),
        duration: 1,
        ..after(&attempt)
    };
    done(steps.answered(&hold, nonce(2), at(101)));
}

#[test]
fn an_earlier_state_is_read_again_before_it_counts() {
    let earlier = held(BOB, 10, 20);
    let now = Lease {
        version: Version(earlier.version.0 + 3),
        ..free()
    };
    let mut steps = acquiring();
    sent(steps.read(Some(&now), nonce(1), at(50)));
    steps.unanswered();
    assert_eq!(steps.read(Some(&earlier), nonce(2), at(51)), Step::Read);
    let again = sent(steps.read(Some(&now), nonce(2), at(52)));
    assert_eq!(nonce_of(&again.write), Some(nonce(1)), "it may land yet");
    steps.unanswered();
    assert_eq!(steps.read(Some(&earlier), nonce(3), at(53)), Step::Read);
    // The etcd of the version that it was sent on is gone.
    let anew = sent(steps.read(Some(&earlier), nonce(3), at(54)));
    assert_eq!(nonce_of(&anew.write), Some(nonce(3)));
    assert_eq!(anew.on, Some(earlier));
}
