//! Which expired locks were left in the middle of something.

use super::decision::Refusal;
use super::state::State;

/// Refuses an expired lock if the state of its Node shows that the holder did not finish: the kubelet
/// does not report that it is ready, or somebody cordoned it.
///
/// # Errors
/// [`Refusal::Unfinished`].
pub const fn check_finished(
    state: State,
    is_ready: bool,
    is_cordoned: bool,
) -> Result<(), Refusal> {
    match state {
        State::Expired { .. } if !is_ready || is_cordoned => Err(Refusal::Unfinished {
            is_ready,
            is_cordoned,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::time::Instant;

    #[test]
    fn it_is_an_expired_lock_of_a_node_that_is_not_ready_or_cordoned() {
        let expired = State::Expired { since: None };
        for (is_ready, is_cordoned) in [(false, false), (false, true), (true, true)] {
            assert_eq!(
                check_finished(expired, is_ready, is_cordoned),
                Err(Refusal::Unfinished {
                    is_ready,
                    is_cordoned
                })
            );
        }
        assert_eq!(check_finished(expired, true, false), Ok(()));
    }

    #[test]
    fn live_locks_are_judged_by_other_rules() {
        let until = Instant::from_micros(1);
        for state in [State::Free, State::Held { until }, State::AdminHold] {
            assert_eq!(check_finished(state, false, true), Ok(()), "{state:?}");
        }
    }
}
