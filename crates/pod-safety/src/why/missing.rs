//! Why a StatefulSet has not created a pod.

use k8s_openapi::api::apps::v1::StatefulSet;
use maintenance_lease::protocol::Now;

use super::{Diagnosis, Reason, State};
use crate::facts::members::{ReadyMember, ordinals, unready};
use crate::known::Known;

/// The objects that explain why a pod does not exist.
#[derive(Clone, Debug)]
pub struct MissingEvidence {
    /// The ordinal of the pod.
    pub ordinal: i32,
    /// The set that its name belongs to.
    pub set: StatefulSet,
    /// The ready members of the namespace's sets, if the set creates its pods in order.
    pub ready: Known<Vec<ReadyMember>>,
    /// The newest warning about the set.
    pub warning: Known<Option<Reason>>,
    /// The current time.
    pub now: Now,
}

/// Explains why a set has not created a pod.
#[must_use]
pub fn diagnose_missing(evidence: &MissingEvidence) -> Diagnosis {
    let mut found = Diagnosis::new(State::Missing);
    let set = &evidence.set;
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let owner = format!("StatefulSet/{name}");
    if set.metadata.deletion_timestamp.is_some() {
        found.push(Reason::SetEnding { owner });
        return found;
    }
    let ordinals = ordinals(set);
    if !ordinals.contains(&evidence.ordinal) {
        found.push(Reason::OutsideSet {
            owner,
            first: ordinals.start,
            replicas: ordinals.len(),
        });
        return found;
    }
    if let Some(ready) = found.known("pods", &evidence.ready) {
        let mut unready = unready(set, evidence.ordinal, ready, evidence.now).into_iter();
        found.extend(unready.next().map(|pod| Reason::InOrder {
            owner: owner.clone(),
            pod,
        }));
    }
    match found.known("events", &evidence.warning) {
        Some(Some(Reason::Event { message, .. })) => found.push(Reason::NotCreated {
            owner,
            message: message.clone(),
        }),
        _ if found.reasons.is_empty() => found.push(Reason::NotCreatedYet { owner }),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;
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
            ready: Known::Yes(Vec::new()),
            warning: Known::Yes(None),
            now: Now::at(Instant::from_micros(0)),
        }
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
        second.ready = Known::Yes(vec![ReadyMember {
            name: "web-0".to_owned(),
            since: None,
        }]);
        assert_eq!(reasons(&second), [after("web-1")]);
        let parallel = evidence(2, &json!({"podManagementPolicy": "Parallel"}));
        assert_eq!(
            reasons(&parallel),
            [Reason::NotCreatedYet { owner: owner() }]
        );
        let mut ending = evidence(0, &json!({}));
        ending.set.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("1970-01-01T00:00:00Z")).expect("a time"));
        assert_eq!(reasons(&ending), [Reason::SetEnding { owner: owner() }]);
        second.ready = Known::Unknown(Why::Forbidden("list pods".to_owned()));
        assert_eq!(diagnose_missing(&second).unread.len(), 1);
    }
}
