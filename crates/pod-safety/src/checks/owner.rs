//! `owner` and `no-owner`: what is promised about two pods at a time, and who brings a new one.

use super::verdict::Verdict;
use crate::facts::{Owner, PodSight, Promise};
use crate::known::Known;

const OWNER: &str = "owner";
const NO_OWNER: &str = "no-owner";

pub(super) fn check(pod: &PodSight, owner: &Owner) -> Verdict {
    let name = &pod.name;
    match owner {
        Owner::Nothing => Verdict::confirm(NO_OWNER, "nothing will recreate it"),
        Owner::Gone { was } => {
            Verdict::confirm(NO_OWNER, format!("{was} is gone: nothing will recreate it"))
        }
        Owner::Controller { .. } if pod.never_ran() => Verdict::ok(
            OWNER,
            "it never ran, so it cannot run beside its replacement",
        ),
        Owner::Controller { what, promise, .. } => match promise {
            Known::Unknown(why) => Verdict::unknown(OWNER, &format!("what {what} guarantees"), why),
            Known::Yes(Promise::None) => Verdict::ok(
                OWNER,
                format!("{what} runs replacements beside old pods anyway"),
            ),
            Known::Yes(Promise::OnePerNode) => Verdict::ok(
                OWNER,
                format!("{what} starts its replacement on the same node"),
            ),
            Known::Yes(Promise::OneOfEachName) => Verdict::confirm(
                OWNER,
                format!(
                    "{what} guarantees at most one {name}; a second may start while the first is still running"
                ),
            ),
            Known::Yes(Promise::NoneBeforeTheEnd) => Verdict::confirm(
                OWNER,
                format!(
                    "{what} guarantees no replacement before {name} has ended; one may start while it \
                     is still running"
                ),
            ),
            Known::Yes(Promise::Perhaps) => Verdict::confirm(
                OWNER,
                format!("{what} may guarantee at most one {name}: its kind is unknown"),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::{controlled, forbidden, pod, unplaced};

    #[test]
    fn only_kinds_known_to_promise_nothing_pass() {
        for (promise, expected) in [
            (Promise::None, Level::Ok),
            (Promise::OnePerNode, Level::Ok),
            (Promise::OneOfEachName, Level::Confirm),
            (Promise::NoneBeforeTheEnd, Level::Confirm),
            (Promise::Perhaps, Level::Confirm),
        ] {
            let verdict = check(&pod(), &controlled(Known::Yes(promise), None));
            assert_eq!(
                (verdict.id, verdict.level),
                (OWNER, expected),
                "{promise:?}"
            );
        }
        let unknown = check(&pod(), &controlled(forbidden(), None));
        assert_eq!((unknown.id, unknown.level), (OWNER, Level::Unknown));
    }

    #[test]
    fn of_what_never_ran_no_second_one_can_start() {
        let pod = unplaced();
        for promise in [Known::Yes(Promise::OneOfEachName), forbidden()] {
            let verdict = check(&pod, &controlled(promise, None));
            assert_eq!((verdict.id, verdict.level), (OWNER, Level::Ok));
        }
        // It is lost all the same.
        assert_eq!(check(&pod, &Owner::Nothing).level, Level::Confirm);
    }

    #[test]
    fn what_nothing_recreates_is_confirmed() {
        let gone = Owner::Gone {
            was: "StatefulSet/web".to_owned(),
        };
        for owner in [Owner::Nothing, gone] {
            let verdict = check(&pod(), &owner);
            assert_eq!((verdict.id, verdict.level), (NO_OWNER, Level::Confirm));
        }
    }
}
