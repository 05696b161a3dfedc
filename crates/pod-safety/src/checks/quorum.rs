//! `quorum`: whether the other members of its set can still decide without it.

use super::verdict::Verdict;
use crate::facts::{Owner, PodSight};
use crate::known::Known;

const ID: &str = "quorum";

pub(super) fn check(pod: &PodSight, owner: &Owner) -> Option<Verdict> {
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
            return Some(Verdict::unknown(ID, &what, why));
        }
        Known::Yes(siblings) if siblings.replicas < 2 => return None,
        Known::Yes(siblings) => siblings,
    };
    let (ready, replicas) = (siblings.ready, siblings.replicas);
    Some(if ready >= siblings.majority() {
        Verdict::ok(
            ID,
            format!("{ready} of {replicas} members of {what} are ready without it"),
        )
    } else {
        Verdict::confirm(
            ID,
            format!(
                "only {ready} of {replicas} members of {what} are ready without it: no majority; \
                 remove the member from its group first"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::{controlled, forbidden, pod, unplaced};
    use crate::facts::{Promise, Siblings};

    #[test]
    fn without_a_majority_it_is_confirmed() {
        let level = |siblings| {
            let owner = controlled(Known::Yes(Promise::OneOfEachName), siblings);
            check(&pod(), &owner).map(|verdict| verdict.level)
        };
        let of = |ready, replicas| level(Some(Known::Yes(Siblings { replicas, ready })));
        assert_eq!(of(2, 3), Some(Level::Ok));
        assert_eq!(of(1, 3), Some(Level::Confirm));
        assert_eq!(of(1, 2), Some(Level::Confirm));
        assert_eq!(of(3, 5), Some(Level::Ok));
        assert_eq!(of(2, 5), Some(Level::Confirm));
        assert_eq!(of(0, 1), None);
        assert_eq!(level(None), None);
        assert_eq!(level(Some(forbidden())), Some(Level::Unknown));
    }

    #[test]
    fn what_never_ran_is_missed_by_nobody() {
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
