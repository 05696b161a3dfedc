//! `owner` and `no-owner`: whether the controller allows two of these pods at a time, and whether anything
//! recreates the pod.

use super::verdict::Verdict;
use crate::facts::{Owner, PodSnapshot, Promise};
use crate::known::Known;

const OWNER: &str = "owner";
const NO_OWNER: &str = "no-owner";

pub(super) fn check(pod: &PodSnapshot, owner: &Owner) -> Verdict {
    match owner {
        Owner::Nothing => Verdict::risk(NO_OWNER, "nothing will recreate it"),
        Owner::Gone { was } => {
            Verdict::risk(NO_OWNER, "its controller is gone, and nothing will recreate it").of([was])
        }
        Owner::Controller { .. } if pod.never_ran() => Verdict::ok(
            OWNER,
            "it never ran, so it cannot run beside its replacement",
        ),
        Owner::Controller { what, promise, .. } => match promise {
            Known::Unknown(why) => Verdict::unread(OWNER, &format!("what {what} guarantees"), why),
            Known::Yes(Promise::None) => Verdict::ok(
                OWNER,
                "its controller runs replacements beside old pods anyway",
            ).of([what]),
            Known::Yes(Promise::OnePerNode) => Verdict::ok(
                OWNER,
                "its controller starts its replacement on the same node",
            ).of([what]),
            Known::Yes(Promise::OneOfEachName) => Verdict::risk(
                OWNER,
                "a second pod of the same name may start while the first is still running",
            ).of([what]),
            Known::Yes(Promise::NoneBeforeTheEnd) => Verdict::risk(
                OWNER,
                "a replacement may start before the pod has ended",
            ).of([what]),
            Known::Yes(Promise::NextRevisionWaits) => Verdict::risk(
                OWNER,
                "its Deployment (Recreate) may start its next revision while the pod is still running",
            ).of([what]),
            Known::Yes(Promise::EndOfJobWaits) => Verdict::risk(
                OWNER,
                "its Job counts as running until the pod is gone; a CronJob may then start the next Job while this \
                 pod is still running",
            ).of([what]),
            Known::Yes(Promise::Perhaps) => Verdict::risk(
                OWNER,
                "its controller, whose kind is unknown, may guarantee at most one pod; a second may start \
                 while the first is still running",
            ).of([what]),
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
            (Promise::OneOfEachName, Level::Risk),
            (Promise::NoneBeforeTheEnd, Level::Risk),
            (Promise::NextRevisionWaits, Level::Risk),
            (Promise::EndOfJobWaits, Level::Risk),
            (Promise::Perhaps, Level::Risk),
        ] {
            let verdict = check(&pod(), &controlled(Known::Yes(promise), None));
            assert_eq!(
                (verdict.id, verdict.level),
                (OWNER, expected),
                "{promise:?}"
            );
        }
        let unknown = check(&pod(), &controlled(forbidden(), None));
        assert_eq!((unknown.id, unknown.level), (OWNER, Level::Unread));
    }

    #[test]
    fn pod_that_never_ran_has_no_owner_risk() {
        let pod = unplaced();
        for promise in [Known::Yes(Promise::OneOfEachName), forbidden()] {
            let verdict = check(&pod, &controlled(promise, None));
            assert_eq!((verdict.id, verdict.level), (OWNER, Level::Ok));
        }
        // Nothing recreates the pod, so it is still a risk.
        assert_eq!(check(&pod, &Owner::Nothing).level, Level::Risk);
    }

    #[test]
    fn pods_that_nothing_recreates_need_consent() {
        let gone = Owner::Gone {
            was: "StatefulSet/web".to_owned(),
        };
        for owner in [Owner::Nothing, gone] {
            let verdict = check(&pod(), &owner);
            assert_eq!((verdict.id, verdict.level), (NO_OWNER, Level::Risk));
        }
    }
}
