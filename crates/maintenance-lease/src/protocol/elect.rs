//! Leader election as client-go holds it, on the same Leases.
//!
//! Wall clocks of leaders may be wrong, so the times in a Lease prove nothing. A contender takes a Lease
//! without a holder. It takes a held one only if it saw the record unchanged for the record's whole
//! duration, measured by its own boot clock ([`Expiry::OwnEyes`](super::terms::Expiry::OwnEyes)).

use super::decision::{Caller, Candidacy, Decision, Refusal, Write};
use super::lease::{Lease, next_transition};
use super::names::Id;
use super::time::Now;

/// Decides whether `caller` becomes the leader, on the Lease that was seen.
///
/// A Lease that the caller's identity holds from an earlier run is waited for like any other: the caller can't
/// know whether that run has ended.
pub(super) fn elect(
    candidacy: Candidacy,
    caller: Caller,
    seen: Option<&Lease>,
    now: Now,
) -> Result<Decision, Refusal> {
    let holder = seen.and_then(|lease| lease.holder);
    let waited = seen.map(|lease| lease.version) == candidacy.unchanged;
    match holder {
        Some(holder) if holder.admin => return Err(Refusal::AdminHold),
        Some(_) if waited => {}
        Some(holder) if holder.id == caller.identity => return Err(Refusal::HeldByCaller),
        Some(_) => return Err(Refusal::Held),
        None => {}
    }
    Ok(Decision::Write(Write::Acquire {
        holder: caller.identity,
        at: now.latest,
        duration: candidacy.duration,
        transitions: transitions(seen, caller.identity),
        nonce: candidacy.nonce,
    }))
}

/// The count that client-go would write: 0 on a new Lease, one more whenever the holder changes.
fn transitions(seen: Option<&Lease>, identity: Id) -> u32 {
    match seen {
        None => 0,
        Some(lease) if lease.holder.map(|holder| holder.id) == Some(identity) => lease.transitions,
        Some(_) => next_transition(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Version;
    use crate::protocol::testing::{ADMIN, ALICE, BOB, alice, held, secs};

    const NONCE: Id = Id(77);

    fn on(seen: Option<&Lease>, unchanged: Option<Version>) -> Result<Decision, Refusal> {
        let candidacy = Candidacy {
            duration: 15,
            nonce: NONCE,
            unchanged,
        };
        elect(candidacy, alice(), seen, Now::at(secs(1_000)))
    }

    fn leads(transitions: u32) -> Result<Decision, Refusal> {
        Ok(Decision::Write(Write::Acquire {
            holder: ALICE.id,
            at: secs(1_000),
            duration: 15,
            transitions,
            nonce: NONCE,
        }))
    }

    #[test]
    fn free_leases_are_acquired_at_once() {
        assert_eq!(on(None, None), leads(0));
        let released = Lease {
            holder: None,
            ..held(BOB, 999, 1)
        };
        assert_eq!(on(Some(&released), None), leads(2));
    }

    #[test]
    fn no_time_in_the_lease_frees_it_and_only_the_version_that_was_waited_for_does() {
        for renewed in [1, 1_000, 100_000] {
            let theirs = held(BOB, renewed, 15);
            assert_eq!(on(Some(&theirs), None), Err(Refusal::Held));
            assert_eq!(on(Some(&theirs), Some(Version(0))), Err(Refusal::Held));
            assert_eq!(on(Some(&theirs), Some(theirs.version)), leads(2));
        }
    }

    #[test]
    fn an_earlier_run_of_the_same_identity_is_waited_out_and_is_no_transition() {
        let own = held(ALICE, 1, 15);
        assert_eq!(on(Some(&own), None), Err(Refusal::HeldByCaller));
        assert_eq!(on(Some(&own), Some(own.version)), leads(1));
    }

    #[test]
    fn an_administrators_hold_is_nobodys_to_take() {
        let hold = held(ADMIN, 1, 15);
        assert_eq!(on(Some(&hold), Some(hold.version)), Err(Refusal::AdminHold));
    }
}
