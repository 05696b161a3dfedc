//! `devices`: whether the devices of the pod can be given to another pod while it still uses them.

use super::verdict::Verdict;
use crate::bugs::{self, Bug};
use crate::facts::PodSnapshot;
use crate::known::Why;

const ID: &str = "devices";

/// Kubernetes frees the resource claims of a pod once the pod is gone. A kubelet that cannot report has not
/// freed their devices yet. Only the driver of a device knows whether two nodes can use it.
pub(super) fn check(pod: &PodSnapshot) -> Option<Verdict> {
    let claims = &pod.resource_claims;
    if claims.is_empty() || pod.never_ran() || bugs::active(Bug::DevicesAreLocal) {
        return None;
    }
    let why = "Kubernetes frees its resource claims once it is gone, even if it is still running";
    let why = Why::Inconclusive(why.to_owned());
    Some(Verdict::unread(ID, "whether its devices can be used twice", &why).of(claims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::{pod, unplaced};

    #[test]
    fn devices_of_a_pod_that_ran_may_be_used_twice() {
        let level = |pod: PodSnapshot, claims: &[&str]| {
            let resource_claims = claims.iter().map(|&name| name.to_owned()).collect();
            let pod = PodSnapshot {
                resource_claims,
                ..pod
            };
            check(&pod).map(|verdict| (verdict.id, verdict.level))
        };
        assert_eq!(level(pod(), &[]), None);
        assert_eq!(level(pod(), &["gpu"]), Some((ID, Level::Unread)));
        assert_eq!(level(unplaced(), &["gpu"]), None);
    }
}
