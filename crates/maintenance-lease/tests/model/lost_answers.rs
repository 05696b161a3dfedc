//! What a read says of a write whose answer never came.
//!
//! Writes that were decided at any time land in any order, twice, late or never, among other tools'
//! writes and deletions; whatever is read in between, the verdict on each is right.

use maintenance_lease::protocol::{
    Decision, Id, Instant, Lease, Now, Span, Verb, Write, WriteOutcome, decide, judge,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::random_input::{self, cases};
use crate::store::{Store, caller};
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
    landed: bool,
    /// Some read showed that it failed.
    failed: bool,
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
                        writes.push(Written { write, on: seen, landed: false, failed: false });
                    }
                }
                Event::Land(which) if !writes.is_empty() => {
                    let index = which.index(writes.len());
                    let arrived = &mut writes[index];
                    if store.land(&arrived.write, arrived.on.as_ref()) {
                        prop_assert!(!arrived.failed, "landed after all: {:?}", arrived.write);
                        arrived.landed = true;
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
