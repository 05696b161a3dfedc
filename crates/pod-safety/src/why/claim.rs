//! Why a claim is not deleted, or does not get a volume.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;

use super::finalizer::PVC_PROTECTION;
use super::{Diagnosis, Finalizer, Reason, State, User};
use crate::facts::pod::{has_ended, node_name};
use crate::facts::source::{claims, volumes};
use crate::known::Known;
use crate::wire::instant;

/// The annotation on a claim that waits for its first pod. The scheduler sets it to the node that it chose,
/// and the volume is created for that node (`AnnSelectedNode`).
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The provisioner of a storage class whose volumes are created by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The objects that explain a claim. Objects that are not needed are not read.
#[derive(Clone, Debug, Default)]
pub struct ClaimEvidence {
    /// The claim.
    pub claim: PersistentVolumeClaim,
    /// The pods of its namespace.
    pub pods: Known<Vec<Pod>>,
    /// Its storage class.
    pub class: Known<Option<StorageClass>>,
    /// The volume that it names.
    pub volume: Known<Option<PersistentVolume>>,
    /// The newest warning about it.
    pub warning: Known<Option<Reason>>,
}

impl ClaimEvidence {
    /// Evidence with only the claim.
    #[must_use]
    pub fn of(claim: PersistentVolumeClaim) -> Self {
        Self {
            claim,
            ..Self::default()
        }
    }

    /// The state of the claim.
    #[must_use]
    pub fn state(&self) -> State {
        let phase = self
            .claim
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        match (&self.claim.metadata.deletion_timestamp, phase) {
            (Some(since), _) => State::Terminating {
                since: instant(since),
            },
            (None, Some("Bound")) => State::Bound,
            (None, Some("Lost")) => State::Lost,
            (None, _) => State::Pending,
        }
    }

    /// The name of the volume in its spec.
    pub(crate) fn volume_name(&self) -> Option<&str> {
        let spec = self.claim.spec.as_ref()?;
        spec.volume_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The name of the storage class in its spec.
    pub(crate) fn class_name(&self) -> Option<&str> {
        let spec = self.claim.spec.as_ref()?;
        spec.storage_class_name
            .as_deref()
            .filter(|name| !name.is_empty())
    }

    fn name(&self) -> &str {
        self.claim.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Explains why a claim is stuck.
#[must_use]
pub fn diagnose_claim(evidence: &ClaimEvidence) -> Diagnosis {
    let mut found = Diagnosis::new(evidence.state());
    match found.state {
        State::Terminating { .. } => {
            let users = users(&mut found, evidence);
            for finalizer in Finalizer::all(&evidence.claim.metadata) {
                found.push(
                    match finalizer.name == PVC_PROTECTION && !users.is_empty() {
                        true => Reason::UsedBy {
                            pods: users.clone(),
                        },
                        false => Reason::Finalizer(finalizer),
                    },
                );
            }
        }
        State::Pending => pending(&mut found, evidence),
        State::Lost => {
            let lost = evidence.volume_name().map(ToOwned::to_owned);
            let lost = lost.map(|volume| Reason::VolumeMissing { volume });
            found.extend(lost);
        }
        _ => {}
    }
    found
}

/// The pods that use the claim, as the PVC protection controller counts them (`podUsesPVCForDeletion`). All
/// pods with a node count, even finished ones. For an ephemeral volume, a pod that was deleted with a grace
/// period of 0 does not count.
fn users(found: &mut Diagnosis, evidence: &ClaimEvidence) -> Vec<User> {
    let name = evidence.name();
    let pods = found.known("pods", &evidence.pods);
    let users = pods.into_iter().flatten().filter(|pod| {
        let is_named = volumes(pod).any(|volume| {
            let claim = volume.persistent_volume_claim.as_ref();
            claim.is_some_and(|claim| claim.claim_name == name)
        });
        let is_shut_down = pod.metadata.deletion_timestamp.is_some()
            && pod.metadata.deletion_grace_period_seconds == Some(0);
        !node_name(pod).is_empty()
            && claims(pod).any(|claim| claim == name)
            && (is_named || !is_shut_down)
    });
    users
        .map(|pod| User {
            name: pod.metadata.name.clone().unwrap_or_default(),
            finished: has_ended(pod),
        })
        .collect()
}

/// Adds why a claim has no volume.
fn pending(found: &mut Diagnosis, evidence: &ClaimEvidence) {
    if let Some(name) = evidence.volume_name() {
        let volume = found.known("volumes", &evidence.volume);
        let owner = volume.map(|volume| {
            let claim = volume.as_ref()?.spec.as_ref()?.claim_ref.as_ref()?;
            Some((claim.namespace.clone()?, claim.name.clone()?))
        });
        let own = evidence.claim.metadata.namespace.as_deref();
        match (volume, owner.flatten()) {
            (Some(None), _) => found.push(Reason::VolumeMissing {
                volume: name.to_owned(),
            }),
            (_, Some((namespace, claim)))
                if Some(&*namespace) != own || claim != evidence.name() =>
            {
                found.push(Reason::VolumeTaken {
                    volume: name.to_owned(),
                    by: format!("{namespace}/{claim}"),
                });
            }
            _ => {}
        }
    } else if let Some(name) = evidence.class_name() {
        match found.known("storage classes", &evidence.class) {
            Some(Some(class)) => {
                let annotations = evidence.claim.metadata.annotations.as_ref();
                let is_chosen = annotations.is_some_and(|all| all.contains_key(SELECTED_NODE));
                let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
                found.push(match &*class.provisioner {
                    _ if waits && !is_chosen => Reason::FirstConsumer {
                        pods: consumers(evidence),
                    },
                    NO_PROVISIONER => Reason::NoVolume,
                    provisioner => Reason::Provisioning {
                        provisioner: provisioner.to_owned(),
                    },
                });
            }
            Some(None) => found.push(Reason::NoClass {
                class: name.to_owned(),
            }),
            None => {}
        }
    } else {
        found.push(Reason::NoVolume);
    }
    let warning = found.known("events", &evidence.warning);
    found.extend(warning.and_then(Clone::clone));
}

/// The pods that use the claim and have not ended.
fn consumers(evidence: &ClaimEvidence) -> Vec<String> {
    let pods = evidence.pods.value().into_iter().flatten();
    let waiting =
        pods.filter(|pod| !has_ended(pod) && claims(pod).any(|claim| claim == evidence.name()));
    waiting
        .filter_map(|pod| pod.metadata.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn diagnosed(claim: Value, change: impl FnOnce(&mut ClaimEvidence)) -> Vec<Reason> {
        let mut evidence = ClaimEvidence::of(serde_json::from_value(claim).expect("a claim"));
        change(&mut evidence);
        diagnose_claim(&evidence).reasons
    }

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn a_claim_is_in_use_while_a_pod_with_a_node_names_it() {
        let claim = json!({"metadata": {
            "name": "data", "deletionTimestamp": "1970-01-01T00:00:00Z",
            "finalizers": ["kubernetes.io/pvc-protection", "example.com/backup"],
        }});
        let pod =
            |name: &str, node: Option<&str>, phase: &str, volume: Value, grace: Option<i64>| {
                read::<Pod>(json!({
                    "metadata": {
                        "name": name,
                        "deletionTimestamp": grace.map(|_| "1970-01-01T00:00:00Z"),
                        "deletionGracePeriodSeconds": grace,
                    },
                    "spec": {"nodeName": node, "containers": [], "volumes": [volume]},
                    "status": {"phase": phase},
                }))
            };
        let named = json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
        let pods = vec![
            pod("a", Some("n"), "Running", named.clone(), None),
            pod("b", Some("n"), "Succeeded", named.clone(), None),
            pod("c", None, "Pending", named.clone(), None),
            pod(
                "d",
                Some("n"),
                "Running",
                json!({"name": "v", "emptyDir": {}}),
                None,
            ),
            pod("e", Some("n"), "Running", named, Some(0)),
        ];
        let reasons = diagnosed(claim.clone(), |evidence| evidence.pods = Known::Yes(pods));
        let user = |name: &str, finished| User {
            name: name.to_owned(),
            finished,
        };
        let pods = vec![user("a", false), user("b", true), user("e", false)];
        assert_eq!(reasons[0], Reason::UsedBy { pods });
        assert!(matches!(&reasons[1], Reason::Finalizer(one) if one.name == "example.com/backup"));

        let of_the_pod = |grace| {
            let volume = json!({"name": "v", "ephemeral": {}});
            let pod = pod("a", Some("n"), "Running", volume, grace);
            let mut claim = claim.clone();
            claim["metadata"]["name"] = json!("a-v");
            diagnosed(claim, |evidence| evidence.pods = Known::Yes(vec![pod]))
        };
        assert!(matches!(of_the_pod(None)[0], Reason::UsedBy { .. }));
        assert!(matches!(of_the_pod(Some(0))[0], Reason::Finalizer(_)));
    }

    #[test]
    fn a_claim_without_a_volume_waits_for_somebody() {
        let claim =
            |spec: Value| json!({"metadata": {"namespace": "shop", "name": "data"}, "spec": spec});
        let class = |provisioner: &str, mode: &str| {
            read::<StorageClass>(json!({"provisioner": provisioner, "volumeBindingMode": mode}))
        };
        let named = || claim(json!({"storageClassName": "fast"}));
        let of_class = |class| diagnosed(named(), |evidence| evidence.class = Known::Yes(class));
        assert_eq!(
            of_class(None),
            [Reason::NoClass {
                class: "fast".to_owned()
            }]
        );
        let provisioner = "csi.example.com".to_owned();
        let made = Some(class("csi.example.com", "Immediate"));
        assert_eq!(of_class(made), [Reason::Provisioning { provisioner }]);
        assert_eq!(
            of_class(Some(class(NO_PROVISIONER, "Immediate"))),
            [Reason::NoVolume]
        );
        let late = Some(class(NO_PROVISIONER, "WaitForFirstConsumer"));
        let none = Reason::FirstConsumer { pods: vec![] };
        assert_eq!(of_class(late.clone()), [none]);
        let pod = |name: &str, node: Option<&str>, phase: &str| {
            read::<Pod>(json!({
                "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [], "volumes": [
                    {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
                ]},
                "status": {"phase": phase},
            }))
        };
        let reasons = diagnosed(named(), |evidence| {
            evidence.class = Known::Yes(late);
            evidence.pods = Known::Yes(vec![
                pod("unscheduled", None, "Pending"),
                pod("placed", Some("n"), "Pending"),
                pod("ended", Some("n"), "Failed"),
            ]);
        });
        let both = Reason::FirstConsumer {
            pods: vec!["unscheduled".to_owned(), "placed".to_owned()],
        };
        assert_eq!(reasons, [both]);
        for spec in [json!({}), json!({"storageClassName": ""})] {
            assert_eq!(diagnosed(claim(spec), |_| {}), [Reason::NoVolume]);
        }

        let naming = || claim(json!({"volumeName": "pv-1"}));
        let of_volume = |volume: Option<Value>| {
            diagnosed(naming(), |evidence| {
                evidence.volume = Known::Yes(volume.map(read));
            })
        };
        let volume = "pv-1".to_owned();
        let missing = Reason::VolumeMissing {
            volume: volume.clone(),
        };
        assert_eq!(of_volume(None), [missing]);
        let bound_to =
            |name| Some(json!({"spec": {"claimRef": {"namespace": "shop", "name": name}}}));
        assert_eq!(of_volume(bound_to("data")), []);
        let by = "shop/other".to_owned();
        assert_eq!(
            of_volume(bound_to("other")),
            [Reason::VolumeTaken { volume, by }]
        );
    }
}
