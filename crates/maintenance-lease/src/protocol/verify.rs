//! Whether an acquisition still holds, for work that goes on only if it does.

use super::decision::Refusal;
use super::lease::Lease;
use super::state::{State, state};
use super::time::Now;

/// Whether `seen` is held, by the acquisition that was meant if `is_meant`. It counts until the end that the
/// Lease states: others wait some seconds more, for clock skew.
///
/// # Errors
/// Why it is not held, and the state that this means.
pub fn check_held(seen: &Lease, is_meant: bool, now: Now) -> Result<(), (Refusal, State)> {
    let state = state(Some(seen), now);
    match state {
        State::Free => Err((Refusal::NotHeld, state)),
        _ if !is_meant => Err((Refusal::ChangedHands, state)),
        State::Expired { .. } => Err((Refusal::Expired, state)),
        // Until the Lease is deleted nobody can acquire it, but nobody can renew it either.
        _ if seen.deleting => Err((Refusal::Deleting, state)),
        State::Held { until } if until < now.latest => {
            Err((Refusal::Expired, State::Expired { since: Some(until) }))
        }
        State::Held { .. } | State::AdminHold => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::testing::{ADMIN, ALICE, held, secs};

    fn refusal(seen: &Lease, is_meant: bool, at: u32) -> Option<Refusal> {
        let checked = check_held(seen, is_meant, Now::at(secs(at)));
        checked.err().map(|(refusal, _)| refusal)
    }

    #[test]
    fn a_lock_counts_until_its_own_end() {
        let lease = held(ALICE, 100, 60);
        assert_eq!(refusal(&lease, true, 160), None);
        // Others can't take it yet.
        let at = Now::at(secs(161));
        assert!(state(Some(&lease), at).is_locked());
        let since = Some(secs(160));
        assert_eq!(
            check_held(&lease, true, at),
            Err((Refusal::Expired, State::Expired { since }))
        );
        assert_eq!(refusal(&lease, true, 900), Some(Refusal::Expired));
    }

    #[test]
    fn a_hold_has_no_end() {
        assert_eq!(refusal(&held(ADMIN, 100, 60), true, 900), None);
    }

    #[test]
    fn another_acquisition_is_not_the_one_that_was_meant() {
        for at in [120, 900] {
            let changed = Some(Refusal::ChangedHands);
            assert_eq!(refusal(&held(ALICE, 100, 60), false, at), changed);
        }
        let free = Lease {
            holder: None,
            ..held(ALICE, 100, 60)
        };
        assert_eq!(refusal(&free, false, 120), Some(Refusal::NotHeld));
    }

    #[test]
    fn leases_being_deleted_are_not_held() {
        let deleting = Lease {
            deleting: true,
            ..held(ALICE, 100, 60)
        };
        assert_eq!(refusal(&deleting, true, 120), Some(Refusal::Deleting));
        assert_eq!(refusal(&deleting, true, 900), Some(Refusal::Expired));
    }
}
