//! What recreates a pod, and whether that controller allows two such pods at a time.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::evidence::NamespaceEvidence;
use crate::bugs::{self, Bug};
use crate::controller::{Kind, controller, shown_as};
use crate::known::Known;

/// What recreates a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Owner {
    /// Nothing, because it has no controller.
    Nothing,
    /// Nothing, because its controller is gone.
    Gone {
        /// The former controller, such as `StatefulSet/web`.
        was: String,
    },
    /// A controller.
    Controller {
        /// The controller, such as `StatefulSet/web`.
        what: String,
        /// What the controller promises about its pods.
        promise: Known<Promise>,
        /// The members of the set, if the controller is a StatefulSet.
        siblings: Option<Known<Siblings>>,
        /// The object for an Event about the controller.
        reference: Box<ObjectReference>,
    },
}

/// What a controller promises about the pods that it creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Nothing. A replacement may run beside the old pod.
    None,
    /// A replacement runs on the same node.
    OnePerNode,
    /// At most one pod of each name.
    OneOfEachName,
    /// No replacement before the old pod has ended.
    NoneBeforeTheEnd,
    /// The Deployment starts no pod of its next revision before the old pod has ended.
    NextRevisionWaits,
    /// The Job, which is ending, counts as running until the old pod has ended. What waits for the Job, such
    /// as a CronJob, starts nothing before.
    EndOfJobWaits,
    /// Unknown, because the kind is unknown: perhaps at most one pod.
    Perhaps,
}

/// The members of a StatefulSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Siblings {
    /// The desired number of members.
    pub replicas: usize,
    /// The number of ready members, without the pod itself.
    pub ready: usize,
}

impl Siblings {
    /// The members of the pod's set. A new set with the same name counts only its own pods, so `pod` is not
    /// among them.
    fn in_set(set: &Found<'_, StatefulSet>, pod: &Pod) -> Self {
        let (set, counts) = match set {
            Found::Itself(set) => (
                set,
                super::PodSnapshot::of(pod).conditions.ready
                    && !bugs::active(Bug::QuorumCountsItself),
            ),
            Found::SameName(set) => (set, false),
        };
        let replicas = set
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        let status = set.status.as_ref();
        let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
        Self {
            replicas: whole(replicas),
            ready: whole(ready).saturating_sub(usize::from(counts)),
        }
    }

    /// How many members make a majority.
    #[must_use]
    pub fn majority(self) -> usize {
        self.replicas / 2 + 1
    }
}

impl Owner {
    /// What recreates `pod`.
    pub(crate) fn of(pod: &Pod, namespace: &NamespaceEvidence) -> Self {
        let Some(reference) = controller(&pod.metadata) else {
            return Self::Nothing;
        };
        let what = shown_as(reference);
        let mut event_on = object_reference(reference, pod.metadata.namespace.clone());
        let mut shown = what.clone();
        let mut siblings = None;
        let promise = match Kind::of(reference) {
            Kind::StatefulSet => {
                let set = found(&namespace.stateful_sets, |set| &set.metadata, reference);
                siblings = Some(match set {
                    Known::Yes(None) => return Self::Gone { was: what },
                    Known::Yes(Some(set)) => {
                        if let Found::SameName(set) = set {
                            shown = anew(&what);
                            event_on.uid = set.metadata.uid.clone();
                        }
                        Known::Yes(Siblings::in_set(&set, pod))
                    }
                    Known::Unknown(why) => Known::Unknown(why),
                });
                Known::Yes(Promise::OneOfEachName)
            }
            Kind::Job => match found(&namespace.jobs, |job| &job.metadata, reference) {
                Known::Yes(Some(Found::Itself(job))) => Known::Yes(promise_of_job(job)),
                // A new Job with that name has its own pods.
                Known::Yes(None | Some(Found::SameName(_))) => return Self::Gone { was: what },
                Known::Unknown(why) => Known::Unknown(why),
            },
            Kind::ReplicaSet => {
                match found(&namespace.replica_sets, |set| &set.metadata, reference) {
                    Known::Yes(None | Some(Found::SameName(_))) => {
                        return Self::Gone { was: what };
                    }
                    Known::Yes(Some(Found::Itself(set))) => {
                        if let Some(above) = controller(&set.metadata) {
                            shown = shown_as(above);
                            event_on = object_reference(above, pod.metadata.namespace.clone());
                        }
                        promise_of_replica_set(set, &namespace.deployments)
                    }
                    Known::Unknown(why) => Known::Unknown(why),
                }
            }
            Kind::ReplicationController => {
                let all = &namespace.replication_controllers;
                if is_gone(all, |controller| &controller.metadata, reference) {
                    return Self::Gone { was: what };
                }
                Known::Yes(Promise::None)
            }
            Kind::DaemonSet => {
                if is_gone(&namespace.daemon_sets, |set| &set.metadata, reference) {
                    return Self::Gone { was: what };
                }
                Known::Yes(Promise::OnePerNode)
            }
            Kind::Other => {
                shown = format!("{what} ({})", reference.api_version);
                Known::Yes(Promise::Perhaps)
            }
        };
        Self::Controller {
            what: shown,
            promise,
            siblings,
            reference: Box::new(event_on),
        }
    }
}

/// The object that was found for a reference.
enum Found<'a, T> {
    /// The object with the uid of the reference.
    Itself(&'a T),
    /// Another object with that name. The first one was deleted and created again.
    SameName(&'a T),
}

/// The object that `reference` points to, among those `read`; `None` if there is none.
fn found<'a, T>(
    read: &'a Known<Vec<T>>,
    metadata: impl Fn(&T) -> &ObjectMeta,
    reference: &OwnerReference,
) -> Known<Option<Found<'a, T>>> {
    read.as_ref().map(|all| {
        let itself = all
            .iter()
            .find(|object| metadata(object).uid.as_deref() == Some(&*reference.uid));
        let same_name = || {
            all.iter()
                .find(|object| metadata(object).name.as_deref() == Some(&*reference.name))
        };
        match itself {
            Some(object) => Some(Found::Itself(object)),
            None if bugs::active(Bug::ControllerByName) => same_name().map(Found::Itself),
            None => same_name().map(Found::SameName),
        }
    })
}

/// Whether a controller was deleted, and perhaps created again. Only a StatefulSet replaces the pods of an
/// earlier one with its name.
fn is_gone<T>(
    read: &Known<Vec<T>>,
    metadata: impl Fn(&T) -> &ObjectMeta,
    reference: &OwnerReference,
) -> bool {
    let found = found(read, metadata, reference);
    matches!(found, Known::Yes(None | Some(Found::SameName(_))))
}

/// The text for a controller that was deleted and created again.
fn anew(what: &str) -> String {
    format!("{what} (a new one of that name)")
}

/// The Deployment whose next revision may wait for the pods of `set`: only a ReplicaSet that was scaled down
/// can be of an earlier revision whose pods are counted.
pub(crate) fn waiting_deployment(set: &ReplicaSet) -> Option<&OwnerReference> {
    let is_scaled_down = set.spec.as_ref().and_then(|spec| spec.replicas) == Some(0);
    controller(&set.metadata).filter(|above| is_scaled_down && is_deployment(above))
}

fn is_deployment(owner: &OwnerReference) -> bool {
    owner.kind == "Deployment" && owner.api_version.starts_with("apps/")
}

/// A ReplicaSet runs replacements beside old pods. But a Deployment with the strategy `Recreate` waits until
/// all pods of its earlier revisions have ended (`oldPodsRunning`).
fn promise_of_replica_set(
    set: &ReplicaSet,
    deployments: &Known<Vec<Deployment>>,
) -> Known<Promise> {
    let Some(above) = waiting_deployment(set) else {
        return Known::Yes(Promise::None);
    };
    deployments.as_ref().map(|deployments| {
        let deployment = deployments
            .iter()
            .find(|one| one.metadata.uid.as_deref() == Some(&*above.uid));
        let strategy =
            deployment.and_then(|one| one.spec.as_ref()?.strategy.as_ref()?.type_.as_deref());
        match strategy {
            Some("Recreate") if !bugs::active(Bug::RecreateRunsBeside) => {
                Promise::NextRevisionWaits
            }
            _ => Promise::None,
        }
    })
}

/// Whether the Job has succeeded or failed, but is not finished. It then waits until its pods have ended
/// (`enactJobFinished`), and creates no more of them.
fn is_ending(job: &Job) -> bool {
    let conditions = { job.status.iter() }.flat_map(|status| status.conditions.iter().flatten());
    let mut is_ending = false;
    for condition in conditions.filter(|condition| condition.status == "True") {
        match &*condition.type_ {
            "Complete" | "Failed" => return false,
            "FailureTarget" | "SuccessCriteriaMet" => is_ending = true,
            _ => {}
        }
    }
    is_ending && !bugs::active(Bug::EndingJobWaitsForNothing)
}

fn promise_of_job(job: &Job) -> Promise {
    if is_ending(job) {
        return Promise::EndOfJobWaits;
    }
    // Same rule as `onlyReplaceFailedPods` of the job controller.
    let waits = job.spec.as_ref().is_some_and(|spec| {
        spec.pod_replacement_policy.as_deref() == Some("Failed")
            || spec.pod_failure_policy.is_some()
    });
    match waits {
        true => Promise::NoneBeforeTheEnd,
        false => Promise::None,
    }
}

fn object_reference(owner: &OwnerReference, namespace: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version: Some(owner.api_version.clone()),
        kind: Some(owner.kind.clone()),
        name: Some(owner.name.clone()),
        uid: Some(owner.uid.clone()),
        namespace,
        ..ObjectReference::default()
    }
}

fn whole(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}
