//! The keeper, step by step.

use super::*;
use crate::protocol::lease::Version;
use crate::protocol::terms::Expiry;
use crate::protocol::testing::{ADMIN, ALICE, BOB, alice, held, secs};
use crate::protocol::time::{Instant, Now};

const TERMS: Terms = Terms::new(60, Span::seconds(10));

/// Boot clock and server's time agree, to make the cases easy to read.
fn at(seconds: u32) -> Clocks {
    let server = secs(seconds);
    Clocks {
        boot: boot(seconds),
        server: Now::at(server),
    }
}

fn boot(seconds: u32) -> BootInstant {
    BootInstant::from_micros(secs(seconds).as_micros())
}

fn keeper() -> Keeper {
    Keeper::new(alice(), TERMS, &held(ALICE, 100, 60), boot(160)).expect("somebody holds it")
}

fn send(keeper: &mut Keeper, seconds: u32) -> Sent {
    match keeper.due(at(seconds)) {
        KeeperAction::Send(sent) => sent,
        other => panic!("{other:?}"),
    }
}

/// What the server has once `sent` landed.
fn after(sent: &Sent) -> Lease {
    let Write::Renew { at, duration, .. } = sent.write else {
        panic!("{sent:?}");
    };
    Lease {
        version: Version(sent.on.version.0 + 1),
        renewed: Some(at),
        duration,
        ..sent.on
    }
}

#[test]
fn it_renews_at_a_third_and_believes_from_before_it_sent() {
    let mut keeper = keeper();
    assert_eq!(keeper.due(at(101)), KeeperAction::Wait(boot(120)));
    let sent = send(&mut keeper, 120);
    assert_eq!(
        keeper.due(at(121)),
        KeeperAction::Wait(boot(150)),
        "one at a time"
    );
    keeper.answered(&after(&sent), at(125));
    assert_eq!(keeper.deadline(), boot(180));
    assert_eq!(keeper.due(at(126)), KeeperAction::Wait(boot(140)));
}

#[test]
fn belief_counts_the_answered_duration_not_the_asked_one() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    let shortened = Lease {
        duration: 30,
        ..after(&sent)
    };
    keeper.answered(&shortened, at(121));
    assert_eq!(keeper.deadline(), boot(150));
    assert_eq!(keeper.due(at(122)), KeeperAction::Wait(boot(130)));
}

#[test]
fn it_is_lost_by_its_own_timer_while_a_request_hangs() {
    let mut keeper = keeper();
    send(&mut keeper, 120);
    assert!(keeper.may_work(boot(149)));
    assert!(!keeper.may_work(boot(150)));
    assert_eq!(keeper.due(at(150)), KeeperAction::Lost(Loss::Expired));
    keeper.answered(&held(ALICE, 149, 60), at(151));
    assert_eq!(
        keeper.due(at(151)),
        KeeperAction::Lost(Loss::Expired),
        "no revival"
    );
}

#[test]
fn an_unanswered_renewal_is_sent_again_as_it_was_and_counts_from_the_first_time() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    keeper.unanswered(at(130));
    let KeeperAction::Wait(retry) = keeper.due(at(130)) else {
        panic!("it is not sent again at once");
    };
    assert!(retry > boot(130) && retry <= boot(132));
    assert_eq!(send(&mut keeper, 132), sent);
    keeper.conflicted(at(132));
    assert_eq!(keeper.due(at(132)), KeeperAction::Read);
    keeper.read(Some(&after(&sent)), at(133));
    assert_eq!(keeper.deadline(), boot(180));
}

#[test]
fn an_unchanged_lease_does_not_settle_a_renewal() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    keeper.unanswered(at(121));
    keeper.watched(&held(ALICE, 100, 60), at(122));
    assert_eq!(send(&mut keeper, 124), sent);
}

#[test]
fn a_refused_renewal_is_decided_anew_on_what_is_read() {
    let mut keeper = keeper();
    let first = send(&mut keeper, 120);
    keeper.conflicted(at(120));
    assert_eq!(keeper.due(at(120)), KeeperAction::Read);
    let annotated = Lease {
        version: Version(9),
        ..held(ALICE, 100, 60)
    };
    keeper.read(Some(&annotated), at(121));
    assert_eq!(keeper.deadline(), boot(160));
    let second = send(&mut keeper, 121);
    assert_eq!(second.on, annotated);
    assert_ne!(second.write, first.write);
}

#[test]
fn losses_name_who_is_there_now() {
    let newer = |lease: Lease| Lease {
        version: Version(7),
        ..lease
    };
    let taken = newer(Lease {
        transitions: 2,
        ..held(BOB, 110, 60)
    });
    let free = newer(Lease {
        holder: None,
        ..held(ALICE, 100, 60)
    });
    let replaced = newer(Lease {
        uid: Id(99),
        ..held(BOB, 110, 60)
    });
    for (seen, loss) in [
        (taken, Loss::Taken { by: BOB.id }),
        (free, Loss::Released),
        (replaced, Loss::Replaced { by: Some(BOB.id) }),
    ] {
        let mut keeper = keeper();
        keeper.watched(&seen, at(111));
        assert_eq!(keeper.due(at(111)), KeeperAction::Lost(loss));
    }
    let mut keeper = keeper();
    keeper.watched_deletion(&newer(held(ALICE, 100, 60)));
    assert_eq!(keeper.due(at(111)), KeeperAction::Lost(Loss::Deleted));
}

#[test]
fn a_late_watch_event_is_no_loss() {
    let mut keeper = keeper();
    let old = Lease {
        version: Version(0),
        ..held(BOB, 20, 60)
    };
    keeper.watched(&old, at(111));
    keeper.watched_deletion(&old);
    assert_eq!(keeper.loss(), None);
}

#[test]
fn an_answer_that_is_older_than_what_a_watch_has_shown_says_nothing() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    let landed = after(&sent);
    let annotated = Lease {
        version: Version(landed.version.0 + 1),
        ..landed
    };
    keeper.watched(&annotated, at(121));
    keeper.answered(&landed, at(122));
    assert_eq!(keeper.deadline(), boot(180));
    assert_eq!(*keeper.held(), annotated, "the next is decided on this");
}

#[test]
fn a_read_that_is_older_than_what_a_watch_has_shown_says_nothing() {
    let old = held(ALICE, 100, 60);
    let mut keeper = keeper();
    keeper.require_check();
    assert_eq!(keeper.due(at(110)), KeeperAction::Check);
    let annotated = Lease {
        version: Version(2),
        ..old
    };
    keeper.watched(&annotated, at(110));
    keeper.read(Some(&old), at(111));
    assert_eq!(*keeper.held(), annotated);
    assert!(!keeper.may_work(boot(112)), "it is not checked");
    assert_eq!(keeper.due(at(113)), KeeperAction::Check);
    keeper.read(Some(&annotated), at(113));
    assert!(keeper.may_work(boot(113)));
}

#[test]
fn times_changed_from_outside_cut_the_belief_and_never_extend_it() {
    let mut keeper = keeper();
    let shortened = Lease {
        version: Version(2),
        duration: 30,
        ..held(ALICE, 100, 60)
    };
    keeper.watched(&shortened, at(110));
    assert_eq!(keeper.deadline(), boot(130));
    let extended = Lease {
        version: Version(3),
        duration: 600,
        ..held(ALICE, 100, 60)
    };
    keeper.watched(&extended, at(111));
    assert_eq!(keeper.deadline(), boot(130));
}

#[test]
fn after_a_jump_nothing_goes_on_before_a_read_and_belief_ends_by_the_servers_time() {
    let mut keeper = keeper();
    keeper.require_check();
    assert!(!keeper.may_work(boot(110)));
    assert_eq!(keeper.due(at(110)), KeeperAction::Check);
    keeper.require_check();
    keeper.read(Some(&held(ALICE, 100, 60)), at(111));
    assert!(!keeper.may_work(boot(111)), "the read was begun before");
    assert_eq!(keeper.due(at(111)), KeeperAction::Check);
    let paused = Clocks {
        boot: boot(112),
        server: Now::at(secs(132)),
    };
    keeper.read(Some(&held(ALICE, 100, 60)), paused);
    assert!(keeper.may_work(boot(112)));
    assert_eq!(keeper.deadline(), boot(140));
}

#[test]
fn after_a_jump_a_leader_believes_no_longer_than_those_wait_who_go_by_their_own_clocks() {
    let terms = TERMS.until(Expiry::OwnEyes);
    let mut keeper = Keeper::new(alice(), terms, &held(ALICE, 100, 60), boot(160)).expect("held");
    keeper.require_check();
    assert_eq!(keeper.due(at(110)), KeeperAction::Check);
    let paused = Clocks {
        boot: boot(112),
        server: Now::at(secs(132)),
    };
    keeper.read(Some(&held(ALICE, 100, 60)), paused);
    assert_eq!(keeper.deadline(), boot(137));
}

#[test]
fn a_renewal_from_before_a_jump_that_lands_after_the_check_counts_by_the_servers_time() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    keeper.require_check();
    // The machine stood still for 20 s.
    let paused = |seconds: u32| Clocks {
        boot: boot(seconds),
        server: Now::at(secs(seconds + 20)),
    };
    assert_eq!(keeper.due(paused(121)), KeeperAction::Check);
    keeper.read(Some(&held(ALICE, 100, 60)), paused(121));
    assert_eq!(keeper.deadline(), boot(140), "the renewal has not landed");
    assert_eq!(keeper.due(paused(122)), KeeperAction::Send(sent));
    keeper.answered(&after(&sent), paused(122));
    assert_eq!(keeper.deadline(), boot(160), "not 20 s more");
}

#[test]
fn a_hold_is_read_now_and_then_and_never_renewed() {
    let hold = held(ADMIN, 100, 60);
    let mut keeper = Keeper::new(alice(), TERMS, &hold, boot(160)).expect("held");
    for seconds in [200, 221, 242] {
        assert_eq!(keeper.due(at(seconds)), KeeperAction::Read);
        keeper.read(Some(&hold), at(seconds));
        assert_eq!(
            keeper.due(at(seconds)),
            KeeperAction::Wait(boot(seconds + 20))
        );
    }
}

#[test]
fn a_hold_lasts_even_if_its_times_are_edited() {
    let hold = held(ADMIN, 100, 60);
    let mut keeper = Keeper::new(alice(), TERMS, &hold, boot(160)).expect("held");
    let edited = |version, renewed, duration| Lease {
        version: Version(version),
        renewed,
        duration,
        ..hold
    };
    keeper.watched(&edited(2, Some(secs(1)), 1), at(200));
    assert!(keeper.may_work(boot(200)));
    assert_eq!(keeper.due(at(200)), KeeperAction::Read);
    keeper.read(Some(&edited(3, None, 0)), at(201));
    keeper.require_check();
    assert_eq!(
        keeper.due(at(201)),
        KeeperAction::Check,
        "whatever its timer says"
    );
    keeper.read(Some(&edited(3, None, 0)), at(300));
    assert!(keeper.may_work(boot(300)));
    assert_eq!(keeper.loss(), None);
}

#[test]
fn a_renewal_that_changed_nothing_counts() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    let same = Lease {
        version: sent.on.version,
        ..after(&sent)
    };
    keeper.answered(&same, at(121));
    assert_eq!(keeper.deadline(), boot(180));
}

#[test]
fn the_shortest_duration_leaves_time_for_a_renewal_to_fail() {
    for (request, stop) in [(10, 11), (1, 0), (3, 4)] {
        let duration = Terms::shortest(Span::seconds(request), Span::seconds(stop));
        let terms = Terms::new(duration, Span::seconds(stop));
        let mut keeper = Keeper::new(
            alice(),
            terms,
            &held(ALICE, 0, duration),
            BootInstant::from_micros(Instant::from_micros(0).as_micros())
                .plus(Span::seconds(duration)),
        )
        .expect("held");
        let KeeperAction::Wait(due) = keeper.due(at(0)) else {
            panic!("{duration}");
        };
        assert!(due.plus(Span::seconds(request)) <= keeper.stop_at());
    }
    assert_eq!(Terms::shortest(Span::seconds(10), Span::seconds(11)), 32);
}

#[test]
fn as_many_renewals_fail_as_were_asked_for_before_the_work_has_to_stop() {
    for (missed, duration, stop) in [(3, 15, 6), (2, 10, 1), (5, 8, 2)] {
        let terms = Terms::tolerating(missed, duration, Span::seconds(stop)).expect("it can be");
        let end = boot(duration);
        let mut keeper = Keeper::new(alice(), terms, &held(ALICE, 0, duration), end).expect("held");
        let mut clocks = at(0);
        let mut failed = 0;
        let loss = loop {
            match keeper.due(clocks) {
                KeeperAction::Wait(until) => clocks.boot = until,
                KeeperAction::Send(_) => {
                    clocks.boot = clocks.boot.plus(terms.request());
                    keeper.unanswered(clocks);
                    failed += 1;
                }
                KeeperAction::Lost(loss) => break loss,
                KeeperAction::Read | KeeperAction::Check => panic!("nothing refused it"),
            }
        };
        assert_eq!((failed, loss), (missed, Loss::Expired), "{duration} s");
        assert_eq!(clocks.boot, boot(duration - stop));
    }
}

#[test]
fn the_next_renewal_is_due_its_interval_after_the_last_was_sent() {
    let terms = Terms::tolerating(4, 60, Span::seconds(10)).expect("it can be");
    assert_eq!(terms.every, Span::seconds(10));
    let lease = held(ALICE, 100, 60);
    let mut keeper = Keeper::new(alice(), terms, &lease, boot(160)).expect("held");
    assert_eq!(keeper.due(at(101)), KeeperAction::Wait(boot(110)));
    let sent = send(&mut keeper, 111);
    keeper.answered(&after(&sent), at(112));
    assert_eq!(keeper.due(at(113)), KeeperAction::Wait(boot(121)));
}

#[test]
fn a_check_is_sent_beside_other_requests_and_repeated_until_it_is_answered() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    keeper.require_check();
    assert_eq!(keeper.due(at(120)), KeeperAction::Check);
    keeper.unread(at(121));
    assert!(keeper.is_in_doubt());
    assert_eq!(keeper.due(at(123)), KeeperAction::Check);
    keeper.conflicted(at(123));
    assert!(
        keeper.is_in_doubt(),
        "the abandoned renewal settles nothing"
    );
    let lease = held(ALICE, 100, 60);
    assert_eq!(keeper.due(at(123)), KeeperAction::Check);
    keeper.read(Some(&lease), at(124));
    assert!(!keeper.is_in_doubt());
    assert_eq!(send(&mut keeper, 124), sent, "it may have landed");
}

#[test]
fn a_loss_after_a_pause_leaves_no_time_to_end() {
    let taken = Lease {
        version: Version(held(ALICE, 100, 60).version.0 + 1),
        ..held(BOB, 112, 60)
    };
    let mut sure = keeper();
    let mut doubted = keeper();
    doubted.require_check();
    for keeper in [&mut sure, &mut doubted] {
        keeper.watched(&taken, at(115));
        assert!(matches!(
            keeper.due(at(115)),
            KeeperAction::Lost(Loss::Taken { .. })
        ));
    }
    assert_eq!(sure.deadline(), boot(160));
    assert_eq!(doubted.deadline(), boot(115));

    let mut checked = keeper();
    checked.require_check();
    assert_eq!(checked.due(at(115)), KeeperAction::Check);
    checked.read(Some(&taken), at(116));
    assert!(matches!(
        checked.due(at(116)),
        KeeperAction::Lost(Loss::Taken { .. })
    ));
    assert_eq!(checked.deadline(), boot(116));

    let mut unanswered = keeper();
    unanswered.require_check();
    assert_eq!(unanswered.due(at(150)), KeeperAction::Lost(Loss::Expired));
    assert_eq!(unanswered.deadline(), boot(150));
}

#[test]
fn a_check_counts_once_the_servers_time_is_bounded() {
    let mut keeper = keeper();
    keeper.require_check();
    assert_eq!(keeper.due(at(110)), KeeperAction::Check);
    let unbounded = Clocks {
        server: Now {
            bounded: false,
            ..Now::at(secs(110))
        },
        ..at(110)
    };
    keeper.read(Some(&held(ALICE, 100, 60)), unbounded);
    assert!(keeper.is_in_doubt());
    assert_eq!(keeper.due(at(112)), KeeperAction::Check);
    keeper.read(Some(&held(ALICE, 100, 60)), at(112));
    assert!(keeper.may_work(boot(112)));
    assert_eq!(keeper.deadline(), boot(160));
}

#[test]
fn a_renewal_is_written_once_the_servers_time_is_known() {
    let wide = |seconds| Clocks {
        server: Now::between(secs(seconds), secs(seconds + 9)),
        ..at(seconds)
    };
    let mut keeper = keeper();
    assert_eq!(
        keeper.due(wide(120)),
        KeeperAction::Read,
        "an answer may tell"
    );
    keeper.read(Some(&held(ALICE, 100, 60)), wide(120));
    let KeeperAction::Send(sent) = keeper.due(wide(121)) else {
        panic!("the latest that it can be is safe");
    };
    assert!(matches!(sent.write, Write::Renew { at, .. } if at == secs(130)));
}

#[test]
fn a_refused_renewal_succeeded_if_a_copy_of_it_was_stored() {
    let mut keeper = keeper();
    let sent = send(&mut keeper, 120);
    keeper.conflicted(at(120));
    assert_eq!(keeper.due(at(120)), KeeperAction::Read);
    keeper.read(Some(&after(&sent)), at(121));
    assert_eq!(keeper.deadline(), boot(180));
}

#[test]
fn a_lower_version_brings_the_lock_into_doubt_the_second_time() {
    let held_at = |version| Lease {
        version: Version(version),
        ..held(ALICE, 100, 60)
    };
    let mut keeper = keeper();
    keeper.watched(&held_at(9), at(110));
    send(&mut keeper, 120);
    keeper.conflicted(at(120));
    assert_eq!(keeper.due(at(120)), KeeperAction::Read);
    keeper.read(Some(&held_at(5)), at(120));
    assert!(keeper.may_work(boot(120)), "once it may be a cache");
    assert_eq!(keeper.due(at(123)), KeeperAction::Read);
    keeper.read(Some(&held_at(5)), at(123));
    assert!(!keeper.may_work(boot(123)));
    assert_eq!(keeper.due(at(123)), KeeperAction::Check);
    keeper.read(Some(&held_at(5)), at(123));
    assert!(keeper.may_work(boot(123)), "this is what etcd has");
    assert_eq!(send(&mut keeper, 123).on, held_at(5));
}

#[test]
fn a_restored_etcd_that_never_had_it_is_a_loss() {
    let mut keeper = keeper();
    keeper.watched(
        &Lease {
            version: Version(9),
            ..held(ALICE, 100, 60)
        },
        at(110),
    );
    send(&mut keeper, 120);
    keeper.conflicted(at(120));
    let before = Lease {
        holder: None,
        version: Version(3),
        ..held(ALICE, 100, 60)
    };
    for seconds in [120, 123, 124] {
        keeper.due(at(seconds));
        keeper.read(Some(&before), at(seconds));
    }
    assert_eq!(keeper.due(at(124)), KeeperAction::Lost(Loss::Released));
}

#[test]
fn a_duration_that_was_shortened_brings_no_burst_of_renewals() {
    let terms = Terms::new(1_800, Span::seconds(1));
    let lease = held(ALICE, 100, 10);
    let mut keeper = Keeper::new(alice(), terms, &lease, boot(110)).expect("held");
    keeper.spread(255);
    let mut seconds = 100;
    for _ in 0..5 {
        let KeeperAction::Wait(until) = keeper.due(at(seconds)) else {
            panic!("it renews at once");
        };
        let next = u32::try_from(until.since(boot(0)).ceil_seconds()).expect("soon");
        assert!(next - seconds >= 3, "after {} s", next - seconds);
        seconds = next;
        let sent = send(&mut keeper, seconds);
        let shortened = Lease {
            duration: 10,
            ..after(&sent)
        };
        keeper.answered(&shortened, at(seconds));
    }
}
