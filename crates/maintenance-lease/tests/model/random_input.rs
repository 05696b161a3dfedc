//! Leases as anybody can make them with kubectl, and everything else that is drawn at random.

use std::env;

use maintenance_lease::protocol::{Id, Instant, Lease, Now, SKEW_BUDGET, Span, Verb, Version};
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::store::{FIRST_ADMIN, holder};

/// A holder that is no client of ours, and that holder as an administrator.
pub(crate) const STRANGER: Id = Id(5);
pub(crate) const STRANGE_ADMIN: Id = Id(FIRST_ADMIN + STRANGER.0);

/// So many tries, the same in each run, so that a change fails only for what it changes. With `PROPTEST_CASES`, as
/// `cargo xtask model` sets it, as many new ones as that says. Neither leaves files behind.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let new = ProptestConfig {
        failure_persistence: None,
        max_local_rejects: u32::MAX,
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    };
    if env::var_os("PROPTEST_CASES").is_some() {
        return new;
    }
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1411),
        ..new
    }
}

/// The largest number in any of a Lease's fields.
const MOST: u32 = i32::MAX as u32;

/// Anything that the server stores.
pub(crate) fn lease() -> impl Strategy<Value = Lease> {
    let fields = (
        option::weighted(0.8, any_holder()),
        option::of(instant()),
        option::weighted(0.9, instant()),
        prop_oneof![Just(0), 1..20_u32, 1..=3600_u32, Just(MOST)],
        prop_oneof![0..5_u32, MOST - 1..=MOST],
        option::of(Just(Id(1_000_001))),
        option::of(Just(Id(1_000_002))),
    );
    let untouchable = (
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
    );
    (fields, untouchable).prop_map(
        |(
            (id, acquired, renewed, duration, transitions, nonce, ended),
            (elected, deleting, foreign),
        )| {
            Lease {
                uid: Id(1_000_000),
                version: Version(1),
                holder: id.map(holder),
                acquired,
                renewed,
                duration,
                transitions,
                nonce,
                ended,
                elected,
                deleting,
                foreign,
            }
        },
    )
}

/// A Lease that somebody holds, and that may be written to.
pub(crate) fn lease_of(holders: impl Strategy<Value = Id>) -> impl Strategy<Value = Lease> {
    (lease(), holders).prop_map(|(lease, id)| Lease {
        holder: Some(holder(id)),
        elected: false,
        deleting: false,
        foreign: false,
        ..lease
    })
}

fn any_holder() -> impl Strategy<Value = Id> {
    prop_oneof![
        2 => (0..3_u32).prop_map(Id),
        1 => (0..3_u32).prop_map(|number| Id(FIRST_ADMIN + number)),
        1 => Just(STRANGER),
        1 => Just(STRANGE_ADMIN),
    ]
}

/// A time around zero, the present, for the most part.
pub(crate) fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![
        8 => (-20_000_000..20_000_000_i64).prop_map(Instant::from_micros),
        8 => (-20..20_i64).prop_map(|seconds| Instant::from_micros(seconds * 1_000_000)),
        1 => any::<i64>().prop_map(Instant::from_micros),
        1 => Just(Instant::UNREADABLE),
    ]
}

/// How an estimate of the server's time errs, at its earliest and at its latest.
///
/// What one client takes for the earliest is ahead of what another takes for the latest by the
/// budget at most; an estimate that is unsure can reach far beyond that on both sides.
pub(crate) fn error() -> impl Strategy<Value = (Span, Span)> {
    let most = SKEW_BUDGET.as_micros();
    let unsure = 9_000_000;
    let earliest = prop_oneof![Just(0), Just(most), 0..=most, -unsure..=most];
    let latest = prop_oneof![Just(0), Just(most), 0..=most, 0..=unsure];
    (earliest, latest)
        .prop_map(|(earliest, latest)| (Span::micros(earliest), Span::micros(latest.max(earliest))))
}

/// A present around zero.
pub(crate) fn now() -> impl Strategy<Value = Now> {
    (instant(), error()).prop_map(|(instant, (earliest, latest))| {
        Now::between(instant + earliest, instant + latest)
    })
}

/// Any verb with valid input, its nonce `nonce` where it has one.
pub(crate) fn verb(nonce: Id) -> impl Strategy<Value = Verb> {
    prop_oneof![
        3 => acquire(nonce),
        2 => option::of(duration()).prop_map(|duration| Verb::Renew { duration }),
        2 => Just(Verb::Release),
        1 => Just(Verb::ForceRelease),
        1 => any::<bool>().prop_map(move |take_over| Verb::Hold { nonce, take_over }),
        1 => any::<bool>().prop_map(|another| Verb::Unhold { another }),
    ]
}

pub(crate) fn acquire(nonce: Id) -> impl Strategy<Value = Verb> {
    (duration(), any::<bool>()).prop_map(move |(duration, reentry)| Verb::Acquire {
        duration,
        nonce,
        reentry,
    })
}

fn duration() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..=6_u32, 1 => 1..=3600_u32]
}
