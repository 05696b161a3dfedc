//! What one decision may and may not do, whatever Lease it is taken on.

use maintenance_lease::protocol::{
    Acquisition, Caller, Decision, Id, Instant, Lease, LockId, Now, SKEW_BUDGET, Span, State, Verb,
    Version, Write, decide, state,
};
use proptest::option;
use proptest::prelude::*;

use crate::random_input::{self, cases};
use crate::store::{self, FIRST_ADMIN, applied};
use crate::world::breaks;

const NONCE: Id = Id(2_000_000);
const MOST: u32 = i32::MAX as u32;

fn caller() -> Caller {
    store::caller(0)
}

/// The write that `verb` leads to, if any.
fn written(verb: Verb, lease: &Lease, meant: Option<Acquisition>, now: Now) -> Option<Write> {
    match decide(verb, caller(), Some(lease), meant, now) {
        Ok(Decision::Write(write)) => Some(write),
        _ => None,
    }
}

/// The Lease after `verb`, if the verb changes it.
fn after(verb: Verb, lease: &Lease, meant: Option<Acquisition>, now: Now) -> Option<Lease> {
    written(verb, lease, meant, now)
        .map(|write| applied(&write, Some(lease), lease.uid, Version(lease.version.0 + 1)))
}

fn admins() -> impl Strategy<Value = Id> {
    prop_oneof![
        (0..3_u32).prop_map(|n| Id(FIRST_ADMIN + n)),
        Just(random_input::STRANGE_ADMIN)
    ]
}

fn others() -> impl Strategy<Value = Id> {
    prop_oneof![Just(Id(1)), Just(random_input::STRANGER)]
}

fn token_part() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Za-z0-9-]{1,40}", "[a-z0-9.$ -]{0,3}"]
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn acquire_never_takes_an_admin_hold(
        lease in random_input::lease_of(admins()),
        verb in random_input::acquire(NONCE),
        now in random_input::now(),
    ) {
        prop_assert_eq!(written(verb, &lease, None, now), None);
    }

    #[test]
    fn acquire_writes_the_length_that_was_asked_and_never_makes_a_hold(
        lease in option::of(random_input::lease()),
        verb in random_input::acquire(NONCE),
        now in random_input::now(),
    ) {
        let Verb::Acquire { duration: requested, .. } = verb else { unreachable!() };
        if let Ok(Decision::Write(Write::Acquire { holder, duration, .. })) =
            decide(verb, caller(), lease.as_ref(), None, now)
        {
            prop_assert_eq!(holder, caller().identity);
            prop_assert_eq!(duration, requested);
            prop_assert!((1..=3600).contains(&duration));
        }
    }

    #[test]
    fn a_lock_of_another_stays_theirs_until_3_seconds_after_its_end(
        lease in random_input::lease_of(others()),
        verb in random_input::verb(NONCE).prop_filter("unbroken", |verb| !breaks(*verb)),
        since_end in prop_oneof![
            Just(SKEW_BUDGET.as_micros()),
            Just(SKEW_BUDGET.as_micros() + 1),
            -9_000_000..9_000_000_i64,
        ],
        unsure in 0..9_000_000_i64,
    ) {
        let end = lease.end().unwrap_or(Instant::from_micros(0));
        prop_assume!(end < Instant::UNREADABLE - Span::seconds(100));
        let earliest = end + Span::micros(since_end);
        let now = Now::between(earliest, earliest + Span::micros(unsure));
        let over = lease.end().is_none() || since_end > SKEW_BUDGET.as_micros();
        let takes = matches!(verb, Verb::Acquire { .. } | Verb::Hold { .. });
        prop_assert_eq!(written(verb, &lease, None, now).is_some(), over && takes);
    }

    #[test]
    fn a_break_ends_only_the_acquisition_that_was_confirmed(
        lease in random_input::lease_of(prop_oneof![others(), admins()]),
        confirmed in option::of((0..3_u32, any::<bool>())),
        verb in random_input::verb(NONCE).prop_filter("breaks", |verb| breaks(*verb)),
        now in random_input::now(),
    ) {
        let held_state = lease.acquisition().expect("held");
        let confirmed = confirmed.map(|(back, other_nonce)| Acquisition {
            transitions: held_state.transitions.saturating_sub(back),
            nonce: if other_nonce { Some(Id(3)) } else { held_state.nonce },
            ..held_state
        });
        let own = [caller().identity, caller().hold_identity].contains(&held_state.holder);
        let held = !matches!(state(Some(&lease), now), State::Expired { .. });
        let breaks = held || !matches!(verb, Verb::Hold { .. });
        if !own && breaks && confirmed != Some(held_state) {
            prop_assert_eq!(written(verb, &lease, confirmed, now), None);
        }
    }

    #[test]
    fn transitions_grow_by_one_an_acquisition_and_never_fall(
        lease in random_input::lease(),
        verb in random_input::verb(NONCE),
        now in random_input::now(),
    ) {
        let meant = lease.acquisition();
        let Some(write) = written(verb, &lease, meant, now) else { return Ok(()) };
        let then = applied(&write, Some(&lease), lease.uid, lease.version).transitions;
        let expected = match (write, lease.transitions) {
            (Write::Acquire { .. }, MOST) => 0,
            (Write::Acquire { .. }, count) => count + 1,
            (_, count) => count,
        };
        prop_assert_eq!(then, expected);
    }

    #[test]
    fn every_write_is_one_that_the_server_accepts(
        lease in option::of(random_input::lease()),
        verb in random_input::verb(NONCE),
        now in random_input::now(),
    ) {
        let meant = lease.and_then(|lease| lease.acquisition());
        if let Ok(Decision::Write(write)) = decide(verb, caller(), lease.as_ref(), meant, now) {
            let lease = applied(&write, lease.as_ref(), Id(7), Version(9));
            prop_assert!((1..=MOST).contains(&lease.duration), "{lease:?}");
            prop_assert!(lease.transitions <= MOST, "{lease:?}");
            prop_assert!(!lease.elected && !lease.deleting, "{lease:?}");
        }
    }

    #[test]
    fn giving_ones_own_back_leaves_it_free(
        lease in random_input::lease_of(prop_oneof![Just(caller().identity), Just(caller().hold_identity)]),
        now in random_input::now(),
        later in random_input::now(),
    ) {
        let own = lease.holder.expect("held");
        let verb = if own.admin { Verb::Unhold { another: false } } else { Verb::Release };
        let freed = after(verb, &lease, lease.acquisition(), now).expect("one's own");
        prop_assert_eq!(state(Some(&freed), later), State::Free);
        prop_assert_eq!(freed.acquisition(), None);
        if let Some(renewed) = lease.renewed {
            prop_assert!(freed.renewed <= Some(renewed), "the renewal moved forward");
        }
    }

    #[test]
    fn renewing_never_moves_the_end_to_an_earlier_time(
        lease in random_input::lease_of(Just(caller().identity)),
        reentry in any::<bool>(),
        verb in random_input::verb(NONCE),
        now in random_input::now(),
    ) {
        let verb = match verb {
            Verb::Acquire { duration, nonce, .. } if reentry => {
                Verb::Acquire { duration, nonce, reentry }
            }
            other => other,
        };
        if let Some(Write::Renew { at, duration, .. }) = written(verb, &lease, None, now) {
            let before = lease.end().unwrap_or(at);
            // The field has 31 bits.
            let furthest = at + Span::seconds(MOST);
            prop_assert!(at + Span::seconds(duration) >= before.min(furthest));
            let requested = match verb {
                Verb::Acquire { duration, .. } | Verb::Renew { duration: Some(duration) } => duration,
                // No longer than maintenance may take.
                _ => lease.duration.clamp(1, 3600),
            };
            let left = (before - at).ceil_seconds().min(i64::from(MOST));
            prop_assert_eq!(i64::from(duration), i64::from(requested).max(left));
        }
    }

    #[test]
    fn a_lock_id_survives_printing(
        uid in token_part(),
        transitions in any::<u32>(),
        nonce in token_part(),
    ) {
        let safe = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let can_be = [&uid, &nonce].iter().all(|part| safe(part) && !part.is_empty());
        let lock_id = LockId::new(&uid, transitions, &nonce);
        prop_assert_eq!(lock_id.is_some(), can_be);
        if let Some(lock_id) = lock_id {
            let word = lock_id.to_string();
            prop_assert!(word.split('.').all(safe), "{word}");
            prop_assert_eq!(word.parse(), Ok(lock_id));
        }
    }

    #[test]
    fn a_word_that_is_a_token_is_printed_as_it_was(
        word in prop_oneof![
            r"[a-z0-9.+ -]{0,12}",
            r"[a-z0-9-]{0,3}\.[+ -]?[0-9]{0,11}\.[a-z0-9-]{0,3}",
        ],
    ) {
        if let Ok(lock_id) = word.parse::<LockId>() {
            prop_assert_eq!(lock_id.to_string(), word);
        }
    }
}
