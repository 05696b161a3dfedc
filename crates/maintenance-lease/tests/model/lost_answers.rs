//! What a read says of a write whose answer never came.
//!
//! Writes that were decided at any time land in any order, twice, late or never, among other tools'
//! writes and deletions; whatever is read in between, the verdict on each is right.

use maintenance_lease::protocol::{
    Decision, Id, Instant, Lease, Now, Span, Verb, Version, Write, WriteOutcome, decide, judge,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::random_input::{self, cases};
use crate::store::{Store, caller, holder};
use crate::world::CLIENTS;

#[derive(Clone, Debug)]
enum Event {
    /// A client decides, on what it has just read or on an earlier sight.
    Decide {
        who: usize,
        verb: Verb,
        sight: Option<Index>,
    },
    /// A write arrives, maybe not for the first time.
    Land(Index),
    /// Another tool changes a label.
    Touch,
    /// The Lease goes with its Node.
    Delete,
    /// Somebody puts a copy of the Lease in its place, as it is or once was.
    Copy(Index),
}

/// A write, and what is known of it by those who see everything.
struct Written {
    write: Write,
    on: Option<Lease>,
    /// This write, or one that nobody can tell from it.
    landed: bool,
    /// Some read showed that it failed.
    failed: bool,
}

impl Written {
    /// Renewals of one acquisition have the same time if they keep an end in the far future, or move a renew time
    /// that is ahead of the clock by the least step. Which of them landed makes no difference: the duration is
    /// read from the Lease.
    fn same(&self, write: &Write, on: Option<Lease>) -> bool {
        match (self.write, *write) {
            (
                Write::Renew { of, at, .. },
                Write::Renew {
                    of: other,
                    at: time,
                    ..
                },
            ) => (of, at) == (other, time),
            (write, other) => write == other && self.on == on,
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let nonce = Id(0);
    prop_oneof![
        6 => (0..CLIENTS, random_input::verb(nonce), prop::option::weighted(0.2, any::<Index>()))
            .prop_map(|(who, verb, sight)| Event::Decide { who, verb, sight }),
        6 => any::<Index>().prop_map(Event::Land),
        1 => Just(Event::Touch),
        1 => Just(Event::Delete),
        1 => any::<Index>().prop_map(Event::Copy),
    ]
}

/// The verb with a nonce of its own.
pub(crate) fn marked(verb: Verb, store: &mut Store) -> Verb {
    verb.with_nonce(store.fresh_id())
}

/// An end that is more than 2^31 s away is never moved earlier, so renewals keep it. They can't be told apart, and
/// each leaves what the other would have left.
#[test]
fn equal_renewals_of_an_end_in_the_far_future_count_as_one() {
    let renewed = Instant::from_micros(2_147_483_000_000_000);
    let seen = Lease {
        uid: Id(1_000_000),
        version: Version(1),
        holder: Some(holder(Id(1))),
        acquired: None,
        renewed: Some(renewed),
        duration: 3_600,
        transitions: 0,
        nonce: None,
        ended: None,
        elected: false,
        deleting: false,
        foreign: false,
    };
    let renew_at = |now| {
        let now = Now::at(Instant::from_micros(now));
        let verb = Verb::Renew { duration: None };
        match decide(verb, caller(1), Some(&seen), seen.acquisition(), now) {
            Ok(Decision::Write(write)) => write,
            other => panic!("{other:?}"),
        }
    };
    let (first, second) = (renew_at(2_000_000), renew_at(4_000_000));
    assert_eq!(first, second);
    let mut store = Store::with(Some(seen));
    assert!(store.land(&first, Some(&seen)));
    assert!(!store.land(&second, Some(&seen)));
    let verdict = judge(&second, Some(&seen), store.lease.as_ref());
    assert_eq!(verdict, WriteOutcome::Landed);
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn the_verdict_on_a_lost_answer_is_right(
        start in prop::option::of(random_input::lease()),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut store = Store::with(start);
        let mut sights = vec![store.lease];
        let mut writes: Vec<Written> = Vec::new();
        // No two decisions of one client fall on the same microsecond.
        let mut now = Instant::from_micros(0);
        for event in events {
            now = now + Span::micros(2_000_001);
            let mut deleted = false;
            let mut last = None;
            match event {
                Event::Decide { who, verb, sight } => {
                    let seen = sight.map_or(store.lease, |sight| *sight.get(&sights));
                    let meant = seen.and_then(|lease| lease.acquisition());
                    let verb = marked(verb, &mut store);
                    let caller = caller(who as u32);
                    let decision = decide(verb, caller, seen.as_ref(), meant, Now::at(now));
                    if let Ok(Decision::Write(write)) = decision {
                        // On an earlier sight, an equal write may have landed already.
                        let landed = writes.iter().any(|written| written.landed && written.same(&write, seen));
                        writes.push(Written { write, on: seen, landed, failed: false });
                    }
                }
                Event::Land(which) if !writes.is_empty() => {
                    let index = which.index(writes.len());
                    let arrived = &writes[index];
                    let (write, on) = (arrived.write, arrived.on);
                    if store.land(&write, on.as_ref()) {
                        prop_assert!(!arrived.failed, "landed after all: {write:?}");
                        for written in &mut writes {
                            written.landed |= written.same(&write, on);
                        }
                        last = Some(index);
                    }
                }
                Event::Land(_) => {}
                Event::Touch => store.touch(),
                Event::Delete => {
                    store.lease = None;
                    deleted = true;
                }
                Event::Copy(sight) => {
                    store.copy(*sight.get(&sights));
                    deleted = true;
                }
            }
            sights.push(store.lease);
            for (index, written) in writes.iter_mut().enumerate() {
                let verdict = judge(&written.write, written.on.as_ref(), store.lease.as_ref());
                match (verdict, written.write) {
                    (WriteOutcome::Landed, Write::Release { of, .. }) => {
                        let held_state = store.lease.and_then(|lease| lease.acquisition());
                        prop_assert_ne!(held_state, Some(of), "it stands there still");
                    }
                    (WriteOutcome::Landed, write) => {
                        prop_assert!(written.landed, "it never landed: {write:?}");
                        if let (Some(on), Some(lease)) = (written.on, store.lease) {
                            prop_assert_eq!(lease.uid, on.uid, "it landed elsewhere");
                        }
                    }
                    (WriteOutcome::Failed, write) => {
                        prop_assert_ne!(last, Some(index), "it has just landed: {:?}", write);
                        written.failed = true;
                    }
                    (WriteOutcome::Ended, write) => {
                        prop_assert!(written.landed, "it never landed: {write:?}");
                        let held_state = store.lease.and_then(|lease| lease.nonce);
                        prop_assert!(
                            matches!(write, Write::Acquire { nonce, .. } if held_state != Some(nonce)),
                            "it stands there still: {write:?}"
                        );
                    }
                    (WriteOutcome::Unknown, write) => {
                        prop_assert!(!written.landed || store.lease.is_none(), "{write:?}");
                    }
                }
                // A creation that found a Lease there can land once that is deleted.
                if deleted && written.on.is_none() {
                    written.failed = false;
                }
            }
        }
    }
}
