//! `quorum`: whether the other members of its set have a majority without it.

use super::verdict::Verdict;
use crate::facts::{Owner, PodSnapshot};
use crate::known::Known;

const ID: &str = "quorum";

pub(super) fn check(pod: &PodSnapshot, owner: &Owner) -> Option<Verdict> {
    let Owner::Controller {
        what,
        siblings: Some(siblings),
        ..
    } = owner
    else {
        return None;
    };
    let siblings = match siblings {
        _ if pod.never_ran() => {
            return Some(Verdict::ok(
                ID,
                "it never ran, so the others lose no member",
            ));
        }
        Known::Unknown(why) => {
            let what = format!("how many members of {what} are ready");
            return Some(Verdict::unread(ID, &what, why));
        }
        Known::Yes(siblings) if siblings.replicas < 2 => return None,
        Known::Yes(siblings) => siblings,
    };
    let (ready, replicas) = (siblings.ready, siblings.replicas);
    let of = format!("{what} ({ready} of {replicas} ready without it)");
    let verdict = match (replicas, ready) {
        (2, 0) => Verdict::risk(ID, "the other member is not ready, so none is left"),
        // Two members cannot form a quorum.
        (2, _) => Verdict::info(
            ID,
            "the other member is ready; if one of them is the primary, check which one first (not checked here)",
        ),
        _ if ready >= siblings.majority() => Verdict::info(
            ID,
            "a majority is ready without it; if the members need a quorum, as etcd does, remove this member first",
        ),
        _ => Verdict::risk(
            ID,
            "no majority is ready without it, so members that need a quorum cannot remove it; deletion may be the \
             only way back, but if the old member still runs, both may serve different data",
        ),
    };
    Some(verdict.of([of]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::{controlled, forbidden, pod, unplaced};
    use crate::facts::{Promise, Siblings};

    #[test]
    fn without_a_majority_or_any_other_it_is_confirmed() {
        let level = |siblings| {
            let owner = controlled(Known::Yes(Promise::OneOfEachName), siblings);
            check(&pod(), &owner).map(|verdict| verdict.level)
        };
        let of = |ready, replicas| level(Some(Known::Yes(Siblings { replicas, ready })));
        assert_eq!(of(2, 3), Some(Level::Info));
        assert_eq!(of(1, 3), Some(Level::Risk));
        assert_eq!(of(1, 2), Some(Level::Info));
        assert_eq!(of(0, 2), Some(Level::Risk));
        assert_eq!(of(3, 5), Some(Level::Info));
        assert_eq!(of(2, 5), Some(Level::Risk));
        assert_eq!(of(0, 1), None);
        assert_eq!(level(None), None);
        assert_eq!(level(Some(forbidden())), Some(Level::Unread));
    }

    #[test]
    fn removing_the_member_first_is_suggested_if_possible() {
        let words = |replicas, ready| {
            let siblings = Some(Known::Yes(Siblings { replicas, ready }));
            let owner = controlled(Known::Yes(Promise::OneOfEachName), siblings);
            check(&pod(), &owner).expect("a set").words
        };
        for (replicas, ready, advised) in [(3, 2, true), (3, 1, false), (2, 1, false)] {
            let words = words(replicas, ready);
            let is_advised = words.ends_with("remove this member first");
            assert_eq!(is_advised, advised, "{words}");
        }
    }

    #[test]
    fn pods_that_never_ran_do_not_count_for_a_quorum() {
        let lone = Known::Yes(Siblings {
            replicas: 3,
            ready: 1,
        });
        for siblings in [lone, forbidden()] {
            let owner = controlled(Known::Yes(Promise::OneOfEachName), Some(siblings));
            let level = check(&unplaced(), &owner).map(|verdict| verdict.level);
            assert_eq!(level, Some(Level::Ok));
        }
    }
}
