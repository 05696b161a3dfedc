//! `mirror`: a static pod exists on its node, even if its object is deleted from the API server.

use super::verdict::Verdict;
use crate::facts::PodSnapshot;

pub(super) fn check(pod: &PodSnapshot) -> Option<Verdict> {
    pod.mirror.then(|| {
        Verdict::final_blocker(
            "mirror",
            "it mirrors a static pod: deleting it does not stop the pod; remove its manifest on the node",
        )
    })
}

/// The verdict on a static pod whose Node is to be deleted.
pub(super) fn check_if_node_is_deleted() -> Verdict {
    Verdict::ok("mirror", "a static pod: only this node runs it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::pod;

    #[test]
    fn static_pods_are_refused_for_good() {
        assert_eq!(check(&pod()), None);
        let mirror = PodSnapshot {
            mirror: true,
            ..pod()
        };
        assert!(check(&mirror).is_some_and(|verdict| verdict.is_final));
    }
}
