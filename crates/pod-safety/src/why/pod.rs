//! Explains why a pod does not end or does not start.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, PodCondition};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use maintenance_lease::protocol::Now;

use super::taint_eviction::taint_eviction;
use super::{Diagnosis, Eviction, Finalizer, Reason, State, waiting};
use crate::controller::{Kind, controller, shown_as};
use crate::facts::pod::{has_ended, node_name, phase};
use crate::facts::selectors::is_usable_on;
use crate::facts::source::claims;
use crate::facts::volumes::{is_multi, modes};
use crate::facts::{NodeRow, PodSnapshot, PresentNode};
use crate::known::Known;
use crate::node_health::Health;

/// The objects that explain a pod. Objects that are not needed are not read.
#[derive(Clone, Debug, Default)]
pub struct PodEvidence {
    /// The pod.
    pub pod: Pod,
    /// Its Node, and other Nodes that have its volumes; `None` if a Node does not exist.
    pub nodes: BTreeMap<String, Known<Option<PresentNode>>>,
    /// Its claims, by name.
    pub claims: BTreeMap<String, Known<Option<PersistentVolumeClaim>>>,
    /// The volumes of its claims, by name.
    pub volumes: BTreeMap<String, Known<Option<PersistentVolume>>>,
    /// All VolumeAttachments.
    pub attachments: Known<Vec<VolumeAttachment>>,
    /// All nodes, if a volume can be used on only some nodes.
    pub rows: Known<Vec<NodeRow>>,
    /// The pods of its namespace, if one of its volumes is attached to another node.
    pub neighbors: Known<Vec<Pod>>,
    /// The budgets of its namespace.
    pub budgets: Known<Vec<PodDisruptionBudget>>,
    /// The newest warning about it, as a reason.
    pub warning: Known<Option<Reason>>,
}

impl PodEvidence {
    /// Evidence with only the pod.
    #[must_use]
    pub fn of(pod: Pod) -> Self {
        Self {
            pod,
            ..Self::default()
        }
    }

    /// The state of the pod.
    #[must_use]
    pub fn state(&self, now: Now) -> State {
        state(&self.pod, now)
    }

    /// The claim and the volume name of each claim that is bound.
    pub(crate) fn bound(&self) -> impl Iterator<Item = (&str, &str)> {
        self.claims.iter().filter_map(|(name, claim)| {
            let claim = claim.value()?.as_ref()?;
            let volume = claim.spec.as_ref()?.volume_name.as_deref()?;
            Some((name.as_str(), volume)).filter(|_| !volume.is_empty())
        })
    }

    /// The volumes for one node at a time that are attached to a node other than the pod's: the claim, the
    /// volume and the attachment.
    pub(crate) fn elsewhere(&self) -> Vec<(&str, &str, &VolumeAttachment)> {
        let node = node_name(&self.pod);
        let attachments = self.attachments.value().map_or(&[][..], Vec::as_slice);
        let all = self.bound().flat_map(|(claim, name)| {
            let volume = self.volumes.get(name).and_then(Known::value);
            let is_exclusive = volume
                .and_then(Option::as_ref)
                .is_some_and(|volume| !is_multi(modes(volume)));
            let of_volume = attachments.iter().filter(move |attachment| {
                let source = attachment.spec.source.persistent_volume_name.as_deref();
                source == Some(name) && is_exclusive
            });
            let is_here = of_volume
                .clone()
                .any(|one| one.spec.node_name == node && is_attached(one));
            of_volume
                .filter(move |one| one.spec.node_name != node && !is_here)
                .map(move |one| (claim, name, one))
        });
        all.collect()
    }
}

/// The state of a pod.
pub(crate) fn state(pod: &Pod, now: Now) -> State {
    let snapshot = PodSnapshot::of(pod);
    match (snapshot.ends, phase(pod)) {
        (Some(since), _) if snapshot.was_forced() && has_stopped(pod) => {
            State::Finalizing { since }
        }
        (Some(until), _) if now.earliest < until => State::Ending { until },
        (Some(since), _) => State::Terminating { since },
        (None, "Succeeded" | "Failed") => State::Finished,
        (None, "Running") => State::Running,
        (None, _) => State::Pending,
    }
}

/// Whether nothing of a pod runs any more. A grace period of 0 does not show this: somebody may have
/// force-deleted the pod, and its kubelet deletes it only after its phase is final.
fn has_stopped(pod: &Pod) -> bool {
    has_ended(pod) || node_name(pod).is_empty()
}

/// Explains why a pod is stuck at `now`.
#[must_use]
pub fn diagnose_pod(evidence: &PodEvidence, now: Now) -> Diagnosis {
    let pod = &evidence.pod;
    let mut found = Diagnosis::new(state(pod, now));
    found.node = Some(node_name(pod).to_owned()).filter(|node| !node.is_empty());
    found.forced = PodSnapshot::of(pod).was_forced();
    match found.state {
        State::Ending { until } => {
            found.push(Reason::Grace {
                until,
                pre_stop: waiting::with_pre_stop(pod),
            });
            node(&mut found, evidence, now);
        }
        State::Terminating { .. } => {
            let health = node(&mut found, evidence, now);
            found.extend(match health {
                _ if node_name(pod).is_empty() => Some(Reason::Collected),
                Some(health) => has_kubelet(&health).then(|| unfinished(pod)),
                None => Some(Reason::Unconfirmed {
                    node: node_name(pod).to_owned(),
                }),
            });
            found.extend(Finalizer::all(&pod.metadata).map(Reason::Finalizer));
            warning(&mut found, evidence);
        }
        State::Finalizing { .. } => {
            found.extend(Finalizer::all(&pod.metadata).map(Reason::Finalizer));
        }
        State::Pending => {
            if !node_name(pod).is_empty() {
                node(&mut found, evidence, now);
            }
            scheduling(&mut found, pod);
            volumes(&mut found, evidence, now);
            found.extend(no_scheduler(pod));
            found.extend(waiting::failing(pod));
            if found.reasons.is_empty() {
                warning(&mut found, evidence);
            }
        }
        State::Running => {
            node(&mut found, evidence, now);
            found.extend(waiting::failing(pod));
            let budgets = found.known("disruption budgets", &evidence.budgets);
            let refused = budgets.and_then(|budgets| Eviction::refused(pod, budgets));
            found.extend(refused.map(Reason::Eviction));
        }
        _ => {}
    }
    let is_going = matches!(
        found.state,
        State::Ending { .. } | State::Terminating { .. } | State::Finalizing { .. }
    );
    let owner = controller(&pod.metadata).filter(|owner| Kind::of(owner).holds_names());
    found.waiting_owner = owner.filter(|_| is_going).map(shown_as);
    found
}

/// Whether a node with this health has a live kubelet, which can still end its pods.
pub(crate) fn has_kubelet(health: &Health) -> bool {
    matches!(
        health,
        Health::Ready
            | Health::NotReady { reporting: true }
            | Health::KubeletAlive { .. }
            | Health::Restarted { .. }
    )
}

/// Adds what is wrong with the pod's node, and what this means for the pod. Returns the node's health, if it
/// is known.
fn node(found: &mut Diagnosis, evidence: &PodEvidence, now: Now) -> Option<Health> {
    let name = node_name(&evidence.pod);
    let health = health_of(found, evidence, name, now)?;
    if health == Health::Ready {
        return Some(health);
    }
    found.push(Reason::Node {
        name: name.to_owned(),
        health: health.clone(),
    });
    let seen = evidence.nodes.get(name).and_then(Known::value);
    let is_asked_to_end = !matches!(found.state, State::Pending | State::Running);
    if let Some(Some(seen)) = seen.filter(|_| !is_asked_to_end) {
        found.push(taint_eviction(&evidence.pod, &seen.taints, now));
    }
    Some(health)
}

fn health_of(
    found: &mut Diagnosis,
    evidence: &PodEvidence,
    name: &str,
    now: Now,
) -> Option<Health> {
    let seen = found.known("nodes", evidence.nodes.get(name)?)?;
    let Some(PresentNode { state, .. }) = seen else {
        return Some(Health::Gone);
    };
    found.known("heartbeats", &state.heartbeat);
    Some(state.health(now))
}

/// Why the kubelet has not confirmed that a pod ended. It first ends the containers, the sandbox and its
/// network, and releases the devices. Then it reports the final phase, unmounts the volumes, and confirms the
/// end (`SyncTerminatingPod`, `SyncTerminatedPod`).
fn unfinished(pod: &Pod) -> Reason {
    let node = node_name(pod).to_owned();
    let names = waiting::running(pod);
    if !names.is_empty() {
        Reason::Containers { node, names }
    } else if has_ended(pod) {
        Reason::Unmount {
            node,
            claims: claims(pod).collect(),
        }
    } else if waiting::is_reported(pod) {
        Reason::Stopping {
            node,
            started: waiting::was_started(pod),
        }
    } else {
        Reason::Unconfirmed { node }
    }
}

/// Adds what the scheduler reports about a pod without a node.
fn scheduling(found: &mut Diagnosis, pod: &Pod) {
    let refused = scheduled(pod).filter(|one| one.status == "False");
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduling_gates.as_ref());
    let gates: Vec<String> = gates
        .into_iter()
        .flatten()
        .map(|gate| gate.name.clone())
        .collect();
    if !gates.is_empty() {
        found.push(Reason::Gated { gates });
    } else if let Some(message) = refused.and_then(|condition| condition.message.clone()) {
        found.push(Reason::Unschedulable { message });
    }
}

/// The reason that no scheduler has reported on a pod without a node. The scheduler may only be slow, so
/// other reasons come first.
fn no_scheduler(pod: &Pod) -> Option<Reason> {
    let spec = pod.spec.as_ref()?;
    let gates = spec.scheduling_gates.as_ref();
    let is_gated = gates.is_some_and(|gates| !gates.is_empty());
    let is_unseen = scheduled(pod).is_none() && node_name(pod).is_empty() && !is_gated;
    is_unseen.then(|| Reason::NoScheduler {
        scheduler: spec.scheduler_name.clone().unwrap_or_default(),
    })
}

fn scheduled(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|one| one.type_ == "PodScheduled")
}

/// Adds why the volumes of a pod that has not started are not ready.
fn volumes(found: &mut Diagnosis, evidence: &PodEvidence, now: Now) {
    for (name, claim) in &evidence.claims {
        let claim_name = name.clone();
        match found.known("claims", claim) {
            Some(None) => found.push(Reason::ClaimMissing { claim: claim_name }),
            Some(Some(claim)) if claim.metadata.deletion_timestamp.is_some() => {
                found.push(Reason::ClaimEnding { claim: claim_name });
            }
            Some(Some(claim)) => {
                let status = claim
                    .status
                    .as_ref()
                    .and_then(|status| status.phase.as_deref());
                if status != Some("Bound") {
                    found.push(Reason::ClaimUnbound { claim: claim_name });
                }
            }
            None => {}
        }
    }
    for (claim, name) in evidence.bound() {
        let volume = evidence
            .volumes
            .get(name)
            .and_then(|volume| found.known("volumes", volume));
        match volume {
            Some(Some(volume)) if node_name(&evidence.pod).is_empty() => {
                affinity(found, evidence, claim, volume);
            }
            Some(None) => found.push(Reason::VolumeMissing {
                volume: name.to_owned(),
            }),
            _ => {}
        }
    }
    attachments(found, evidence, now);
}

/// Adds a reason if none of the nodes that can use the volume accepts pods.
fn affinity(found: &mut Diagnosis, evidence: &PodEvidence, claim: &str, volume: &PersistentVolume) {
    let Some(rows) = found.known("nodes", &evidence.rows) else {
        return;
    };
    let usable: Vec<&NodeRow> = rows
        .iter()
        .filter(|row| is_usable_on(volume, &row.labels))
        .collect();
    if usable.iter().any(|row| row.is_ready && !row.is_cordoned) {
        return;
    }
    found.push(Reason::VolumeAffinity {
        claim: claim.to_owned(),
        volume: volume.metadata.name.clone().unwrap_or_default(),
        nodes: usable
            .iter()
            .map(|row| (row.name.clone(), !row.is_ready))
            .collect(),
    });
}

/// Adds what prevents the volumes of a pod from being attached to its node.
fn attachments(found: &mut Diagnosis, evidence: &PodEvidence, now: Now) {
    let Some(all) = found.known("volume attachments", &evidence.attachments) else {
        return;
    };
    let pod = &evidence.pod;
    for (claim, volume, attachment) in evidence.elsewhere() {
        let node = attachment.spec.node_name.clone();
        let health = health_of(found, evidence, &node, now);
        let neighbors = found.known("pods", &evidence.neighbors);
        let users = neighbors
            .into_iter()
            .flatten()
            .filter(|other| node_name(other) == node && claims(other).any(|used| used == claim));
        found.push(Reason::MultiAttach {
            claim: claim.to_owned(),
            volume: volume.to_owned(),
            pods: users
                .filter_map(|other| other.metadata.name.clone())
                .collect(),
            node,
            health,
            detaching: attachment.metadata.deletion_timestamp.is_some(),
        });
    }
    for (_, volume) in evidence.bound() {
        let mut here = all.iter().filter(|attachment| {
            attachment.spec.node_name == node_name(pod)
                && attachment.spec.source.persistent_volume_name.as_deref() == Some(volume)
        });
        let error =
            here.find_map(|one| one.status.as_ref()?.attach_error.as_ref()?.message.clone());
        found.extend(error.map(|message| Reason::AttachFailed {
            volume: volume.to_owned(),
            message,
        }));
    }
}

/// Adds the newest warning about the pod.
fn warning(found: &mut Diagnosis, evidence: &PodEvidence) {
    let warning = found.known("events", &evidence.warning);
    let warning = warning.and_then(Clone::clone);
    found.extend(warning);
}

fn is_attached(attachment: &VolumeAttachment) -> bool {
    attachment
        .status
        .as_ref()
        .is_some_and(|status| status.attached)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use maintenance_lease::protocol::{Instant, Span};
    use serde_json::{Value, json};

    use super::*;

    const NOW: Instant = Instant::from_micros(1_000_000_000);

    fn pod(metadata: &Value) -> Pod {
        let pod = json!({"metadata": metadata, "spec": {"containers": [], "nodeName": "n"}});
        serde_json::from_value(pod).expect("a Pod")
    }

    #[test]
    fn a_deletion_is_reported_by_its_progress() {
        let deleted_pod = |at: &str, grace: u32, finalizers: &[&str]| {
            pod(&json!({
                "deletionTimestamp": at,
                "deletionGracePeriodSeconds": grace,
                "finalizers": finalizers,
            }))
        };
        let deleted = |at: &str, grace: u32, finalizers: &[&str]| {
            state(&deleted_pod(at, grace, finalizers), Now::at(NOW))
        };
        let (soon, past) = ("1970-01-01T00:17:00Z", "1970-01-01T00:07:40Z");
        let until = NOW + Span::seconds(20);
        assert_eq!(deleted(soon, 30, &[]), State::Ending { until });
        let since = NOW - Span::seconds(540);
        assert_eq!(deleted(past, 30, &[]), State::Terminating { since });
        let finalizers = ["example.com/backup"];
        // It was force-deleted, but may still run.
        assert_eq!(deleted(past, 0, &finalizers), State::Terminating { since });
        let mut ended = deleted_pod(past, 0, &finalizers);
        ended.status = serde_json::from_value(json!({"phase": "Failed"})).expect("a status");
        assert_eq!(state(&ended, Now::at(NOW)), State::Finalizing { since });
        let mut unscheduled = deleted_pod(past, 0, &finalizers);
        unscheduled.spec = serde_json::from_value(json!({"containers": []})).expect("a spec");
        assert_eq!(
            state(&unscheduled, Now::at(NOW)),
            State::Finalizing { since }
        );
        // The pod first waits for the kubelet to confirm its end, and only then for the finalizer.
        assert_eq!(deleted(past, 30, &finalizers), State::Terminating { since });
    }

    #[test]
    fn a_container_that_fails_is_a_reason_and_one_that_waits_is_none() {
        let mut pod = pod(&json!({}));
        let waiting = |name: &str, reason: &str, message: Option<&str>| {
            json!({
                "name": name, "image": "none", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": message}},
            })
        };
        let status = json!({"phase": "Pending", "containerStatuses": [
            waiting("app", "ImagePullBackOff", Some("no such image")),
            waiting("sidecar", "ContainerCreating", None),
        ]});
        pod.status = serde_json::from_value(status).expect("a status");
        let found = diagnose_pod(&PodEvidence::of(pod), Now::at(NOW));
        let failing = Reason::Container {
            name: "app".to_owned(),
            reason: "ImagePullBackOff".to_owned(),
            message: "no such image".to_owned(),
        };
        assert_eq!(found.state, State::Pending);
        assert_eq!(found.reasons, [failing]);
    }

    #[test]
    fn the_kubelet_ends_a_pod_before_it_unmounts_its_volumes() {
        let unfinished = |phase: &str, states: &[Value]| {
            let statuses: Vec<Value> = { states.iter() }
                .map(|state| {
                    json!({
                        "name": "main", "image": "none", "imageID": "", "ready": false,
                        "restartCount": 0, "state": state,
                    })
                })
                .collect();
            let mut pod = pod(&json!({}));
            let status = json!({"phase": phase, "containerStatuses": statuses});
            pod.status = serde_json::from_value(status).expect("a status");
            super::unfinished(&pod)
        };
        let node = || "n".to_owned();
        let running = json!({"running": {}});
        let stopped = json!({"terminated": {"exitCode": 137}});
        let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
        let names = vec!["main".to_owned()];
        let containers = Reason::Containers {
            node: node(),
            names,
        };
        let stopping = |started| Reason::Stopping {
            node: node(),
            started,
        };
        let unmount = Reason::Unmount {
            node: node(),
            claims: vec![],
        };
        let unconfirmed = Reason::Unconfirmed { node: node() };
        for (phase, states, expected) in [
            ("Running", &[running, stopped.clone()][..], containers),
            ("Running", slice::from_ref(&stopped), stopping(true)),
            ("Pending", slice::from_ref(&waiting), stopping(false)),
            (
                "Pending",
                &[stopped.clone(), waiting.clone()],
                stopping(true),
            ),
            ("Failed", slice::from_ref(&stopped), unmount),
            ("Running", &[], unconfirmed),
        ] {
            assert_eq!(unfinished(phase, states), expected, "{phase} {states:?}");
        }
    }

    /// Its Job keeps it until its phase is final, and no kubelet sets the phase.
    #[test]
    fn a_pod_of_a_job_without_a_node_waits_for_the_garbage_collector() {
        let mut pod = pod(&json!({
            "deletionTimestamp": "1970-01-01T00:07:40Z", "deletionGracePeriodSeconds": 0,
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        }));
        pod.spec = serde_json::from_value(json!({"containers": []})).expect("a spec");
        let found = diagnose_pod(&PodEvidence::of(pod), Now::at(NOW));
        assert!(matches!(found.state, State::Terminating { .. }));
        assert_eq!(found.reasons[0], Reason::Collected);
    }

    #[test]
    fn a_gate_is_the_reason_why_a_pod_is_not_scheduled() {
        let mut pod = pod(&json!({}));
        let spec = json!({"containers": [], "schedulingGates": [{"name": "example.com/quota"}]});
        pod.spec = serde_json::from_value(spec).expect("a spec");
        let status = json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]});
        pod.status = serde_json::from_value(status).expect("a status");
        let found = diagnose_pod(&PodEvidence::of(pod), Now::at(NOW));
        let gates = vec!["example.com/quota".to_owned()];
        assert_eq!(found.reasons, [Reason::Gated { gates }]);
    }

    #[test]
    fn a_pod_that_no_scheduler_has_reported_on_names_its_scheduler() {
        let reasons = |node: Option<&str>, conditions: Value| {
            let mut pod = pod(&json!({}));
            let spec = json!({"containers": [], "nodeName": node, "schedulerName": "batch"});
            pod.spec = serde_json::from_value(spec).expect("a spec");
            let status = json!({"phase": "Pending", "conditions": conditions});
            pod.status = serde_json::from_value(status).expect("a status");
            diagnose_pod(&PodEvidence::of(pod), Now::at(NOW)).reasons
        };
        let scheduler = "batch".to_owned();
        let none = json!([]);
        let seen = json!([{"type": "PodScheduled", "status": "True"}]);
        assert_eq!(
            reasons(None, none.clone()),
            [Reason::NoScheduler { scheduler }]
        );
        assert_eq!(reasons(None, seen), []);
        assert_eq!(reasons(Some("n"), none), []);
    }

    #[test]
    fn a_failed_attachment_to_its_own_node_is_a_reason() {
        let mut pod = pod(&json!({"namespace": "shop"}));
        pod.status = serde_json::from_value(json!({"phase": "Pending"})).expect("a status");
        let claim = json!({"spec": {"volumeName": "pv-1"}, "status": {"phase": "Bound"}});
        let claim = serde_json::from_value(claim).expect("a claim");
        let attachment = |node: &str, error: &str| {
            let attachment = json!({
                "spec": {"attacher": "csi", "nodeName": node, "source": {"persistentVolumeName": "pv-1"}},
                "status": {"attached": false, "attachError": {"message": error}},
            });
            serde_json::from_value(attachment).expect("an attachment")
        };
        let evidence = PodEvidence {
            claims: BTreeMap::from([("data".to_owned(), Known::Yes(Some(claim)))]),
            attachments: Known::Yes(vec![
                attachment("other", "elsewhere"),
                attachment("n", "no disk"),
            ]),
            ..PodEvidence::of(pod)
        };
        let failed = Reason::AttachFailed {
            volume: "pv-1".to_owned(),
            message: "no disk".to_owned(),
        };
        assert_eq!(diagnose_pod(&evidence, Now::at(NOW)).reasons, [failed]);
    }

    #[test]
    fn only_controllers_that_need_the_name_wait_for_it() {
        let is_awaited = |owners: Value| {
            let pod = pod(&json!({
                "deletionTimestamp": "1970-01-01T00:07:40Z", "ownerReferences": owners,
            }));
            let diagnosis = diagnose_pod(&PodEvidence::of(pod), Now::at(NOW));
            diagnosis.waiting_owner.is_some()
        };
        assert!(!is_awaited(json!([])), "nobody replaces it");
        for (version, kind, expected) in [
            ("apps/v1", "ReplicaSet", false),
            ("apps/v1", "DaemonSet", false),
            ("batch/v1", "Job", false),
            ("v1", "ReplicationController", false),
            ("apps/v1", "StatefulSet", true),
            ("db.example/v1", "Postgres", true),
            ("db.example/v1", "ReplicaSet", true),
        ] {
            let owner = json!([{
                "apiVersion": version, "kind": kind, "name": "x", "uid": "1", "controller": true,
            }]);
            assert_eq!(is_awaited(owner), expected, "{version} {kind}");
        }
    }
}
