//! Why a StatefulSet has not created a pod.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;

use super::pod::is_over;
use super::{Diagnosis, Reason, State};
use crate::facts::PodSight;
use crate::facts::owner::controller;
use crate::known::Known;

/// What was read for a pod that does not exist.
#[derive(Clone, Debug)]
pub struct MissingEvidence {
    /// Its number in the set.
    pub ordinal: i32,
    /// The set that its name belongs to.
    pub set: StatefulSet,
    /// The pods of the namespace, if the set creates its pods one after another.
    pub pods: Known<Vec<Pod>>,
    /// The newest warning about the set.
    pub warning: Known<Option<Reason>>,
}

/// The name of a StatefulSet and the ordinal in a pod's name, if it has that form.
#[must_use]
pub fn set_of(pod: &str) -> Option<(&str, i32)> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?)).filter(|(_, ordinal)| *ordinal >= 0 && !set.is_empty())
}

/// Whether a set creates a pod only after all before it are ready.
#[must_use]
pub fn is_ordered(set: &StatefulSet) -> bool {
    let policy = set
        .spec
        .as_ref()
        .and_then(|spec| spec.pod_management_policy.as_deref());
    policy != Some("Parallel")
}

/// What is known of a pod that its set has not created.
#[must_use]
pub fn diagnose_missing(evidence: &MissingEvidence) -> Diagnosis {
    let mut found = Diagnosis::new(State::Missing);
    let set = &evidence.set;
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let owner = format!("StatefulSet/{name}");
    let spec = set.spec.as_ref();
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let ordinals = spec.and_then(|spec| spec.ordinals.as_ref());
    let first = ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0);
    if !(first..first.saturating_add(replicas)).contains(&evidence.ordinal) {
        found.reasons.push(Reason::OutsideSet {
            owner,
            first,
            replicas,
        });
        return found;
    }
    if is_ordered(set)
        && let Some(pods) = found.known("pods", &evidence.pods)
    {
        let uid = set.metadata.uid.as_deref();
        let is_ready = |wanted: &str| {
            let pods = pods.iter().filter(|pod| {
                let owner = controller(&pod.metadata).map(|owner| &*owner.uid);
                owner == uid && pod.metadata.name.as_deref() == Some(wanted)
            });
            pods.into_iter()
                .any(|pod| PodSight::of(pod).told.ready && !is_over(pod))
        };
        let earlier = (first..evidence.ordinal).map(|ordinal| format!("{name}-{ordinal}"));
        let unready = { earlier }.find(|pod| !is_ready(pod));
        found.reasons.extend(unready.map(|pod| Reason::InOrder {
            owner: owner.clone(),
            pod,
        }));
    }
    match found.known("events", &evidence.warning) {
        Some(Some(Reason::Event { message, .. })) => found.reasons.push(Reason::NotCreated {
            owner,
            message: message.clone(),
        }),
        _ if found.reasons.is_empty() => found.reasons.push(Reason::NotCreatedYet { owner }),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::known::Why;

    fn evidence(ordinal: i32, spec: &Value) -> MissingEvidence {
        let mut set = json!({
            "metadata": {"name": "web", "uid": "s"},
            "spec": {"serviceName": "web", "selector": {}, "template": {}, "replicas": 3},
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            set["spec"][field] = value.clone();
        }
        MissingEvidence {
            ordinal,
            set: serde_json::from_value(set).expect("a set"),
            pods: Known::Yes(Vec::new()),
            warning: Known::Yes(None),
        }
    }

    fn pod(name: &str, ready: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": name, "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s",
                "controller": true,
            }]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
        });
        serde_json::from_value(pod).expect("a pod")
    }

    #[test]
    fn a_set_creates_what_is_in_its_range_and_in_order() {
        let owner = || "StatefulSet/web".to_owned();
        let outside = |first, replicas| Reason::OutsideSet {
            owner: owner(),
            first,
            replicas,
        };
        let reasons = |evidence: &MissingEvidence| diagnose_missing(evidence).reasons;
        assert_eq!(reasons(&evidence(3, &json!({}))), [outside(0, 3)]);
        let from_one = json!({"ordinals": {"start": 1}});
        assert_eq!(reasons(&evidence(0, &from_one)), [outside(1, 3)]);
        let after = |pod: &str| Reason::InOrder {
            owner: owner(),
            pod: pod.to_owned(),
        };
        let mut second = evidence(2, &json!({}));
        assert_eq!(reasons(&second), [after("web-0")]);
        second.pods = Known::Yes(vec![pod("web-0", "True"), pod("web-1", "False")]);
        assert_eq!(reasons(&second), [after("web-1")]);
        let parallel = evidence(2, &json!({"podManagementPolicy": "Parallel"}));
        assert_eq!(
            reasons(&parallel),
            [Reason::NotCreatedYet { owner: owner() }]
        );
        second.pods = Known::Unknown(Why::Forbidden("list pods".to_owned()));
        assert_eq!(diagnose_missing(&second).unread.len(), 1);
    }

    #[test]
    fn the_name_of_a_pod_tells_its_set() {
        assert_eq!(set_of("web-0"), Some(("web", 0)));
        assert_eq!(set_of("web-db-12"), Some(("web-db", 12)));
        for other in ["web", "web-7d4c", "-1", "web-"] {
            assert_eq!(set_of(other), None, "{other}");
        }
    }
}
