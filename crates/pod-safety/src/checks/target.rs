//! `target`: the object is still the one in the report.

use super::verdict::Verdict;
use crate::facts::{PodSnapshot, PresentNode};
use crate::known::Known;

const ID: &str = "target";

pub(super) fn check(pod: &PodSnapshot, first: Option<&str>) -> Verdict {
    verdict(&pod.uid, &pod.version, first)
}

pub(super) fn check_node(node: &Known<Option<PresentNode>>, first: Option<&str>) -> Verdict {
    match node {
        Known::Yes(Some(node)) => verdict(&node.uid, &node.version, first),
        Known::Yes(None) => Verdict::final_blocker(ID, "it is already gone"),
        Known::Unknown(why) => {
            Verdict::final_blocker(ID, format!("could not read the Node: {why}"))
        }
    }
}

fn verdict(uid: &str, version: &str, first: Option<&str>) -> Verdict {
    match first {
        Some(first) if first != uid => Verdict::final_blocker(
            ID,
            format!("it was replaced: this is a new one with the same name (uid {uid})"),
        ),
        _ => Verdict::ok(ID, format!("uid {uid}, resource version {version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::pod;

    #[test]
    fn replaced_targets_are_always_refused() {
        assert_eq!(check(&pod(), None).level, Level::Ok);
        assert_eq!(check(&pod(), Some("u-1")).level, Level::Ok);
        let replaced = check(&pod(), Some("u-0"));
        assert_eq!((replaced.level, replaced.is_final), (Level::Blocker, true));
    }
}
