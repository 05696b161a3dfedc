//! What is lost if a node is fenced, and which pods stay on it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::remains::stays;
use crate::bugs::{self, Bug};
use crate::constants::{OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE};
use crate::controller::controller;
use crate::facts::pod::{full_name, has_ended, namespace};
use crate::facts::source::volumes;
use crate::facts::{NamespaceEvidence, Owner};
use crate::known::Known;
use crate::taint::{NoExecute, OutOfService};

/// What fencing costs, as lists of pods (`NAMESPACE/NAME`). Except in `twice`, pods that are already being
/// deleted are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Pods that nothing recreates, because they have no controller.
    pub no_owner: Vec<String>,
    /// Pods that lose the data of an emptyDir.
    pub scratch: Vec<String>,
    /// Pods that may run twice although their controller promises to run only one, because the node is only
    /// cut off. Includes pods that are already being deleted, and those whose controller could not be read.
    pub twice: Vec<String>,
    /// Pods that stay, because they tolerate the taint or are static.
    pub staying: Vec<String>,
}

impl Cost {
    /// What is lost if a node with these `pods` is fenced. `taint` is the out-of-service taint that the node
    /// already has. `twice` is empty, because it needs more reads.
    #[must_use]
    pub fn of(pods: &[Pod], taint: &OutOfService) -> Self {
        let mut cost = Self::default();
        for pod in pods {
            if pod.metadata.deletion_timestamp.is_some() || has_ended(pod) {
                continue;
            }
            if !leaves(pod, taint) {
                cost.staying.push(full_name(pod));
                continue;
            }
            if controller(&pod.metadata).is_none() {
                cost.no_owner.push(full_name(pod));
            }
            if volumes(pod).any(|volume| volume.empty_dir.is_some()) {
                cost.scratch.push(full_name(pod));
            }
        }
        cost
    }
}

/// Whether `pod` is still running, as far as known, and Kubernetes deletes it once the node is fenced. Pods
/// that are already being deleted are force-deleted, even if they tolerate the taint (`gcTerminating`).
pub(crate) fn is_deleted(pod: &Pod, taint: &OutOfService) -> bool {
    match pod.metadata.deletion_timestamp {
        Some(_) => !has_ended(pod) && !bugs::active(Bug::EndingIsGone),
        None => leaves(pod, taint),
    }
}

/// Those of the `deleted` pods that may run twice if the node is only cut off. The controllers that were read
/// are in `namespaces`.
pub(crate) fn twice(
    deleted: &[&Pod],
    namespaces: &BTreeMap<String, NamespaceEvidence>,
) -> Vec<String> {
    let unread = NamespaceEvidence::default();
    let runs_twice = |pod: &&&Pod| {
        let evidence = namespaces.get(namespace(pod)).unwrap_or(&unread);
        match Owner::of(pod, evidence) {
            Owner::Controller { promise, .. } => match promise {
                Known::Yes(promise) => promise.forbids_two(),
                Known::Unknown(_) => true,
            },
            Owner::Nothing | Owner::Gone { .. } => false,
        }
    };
    let twice = deleted.iter().filter(runs_twice);
    twice.map(|pod| full_name(pod)).collect()
}

/// Whether `pod` is still running, as far as known, and leaves its node once the node is fenced.
fn leaves(pod: &Pod, taint: &OutOfService) -> bool {
    let ours = OutOfService::Evicting(NoExecute {
        key: OUT_OF_SERVICE.to_owned(),
        value: OUT_OF_SERVICE_VALUE.to_owned(),
        added: None,
    });
    let taint = if taint.is_evicting() { taint } else { &ours };
    !has_ended(pod) && !stays(pod, taint)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pods_deleted_only_by_the_taint_are_its_cost() {
        let pod = |name: &str, meta: Value, spec: Value, phase: &str| -> Pod {
            let mut pod = json!({
                "metadata": {"namespace": "shop", "name": name},
                "spec": {"containers": []},
                "status": {"phase": phase},
            });
            for (part, more) in [("metadata", meta), ("spec", spec)] {
                let fields = more.as_object().expect("fields").clone();
                pod[part].as_object_mut().expect("fields").extend(fields);
            }
            serde_json::from_value(pod).expect("a pod")
        };
        let owned_by = |kind: &str| {
            json!({"ownerReferences": [{
                "apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "r-1", "controller": true,
            }]})
        };
        let owned = || owned_by("ReplicaSet");
        let scratch = || json!({"volumes": [{"name": "tmp", "emptyDir": {}}]});
        let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
        let deleted = json!({"deletionTimestamp": "2026-01-02T03:04:05Z"});
        let pods = [
            pod("bare", json!({}), scratch(), "Running"),
            pod("owned", owned(), scratch(), "Running"),
            pod("plain", owned(), json!({}), "Running"),
            pod("db-0", owned_by("StatefulSet"), json!({}), "Running"),
            pod("proxy", json!({}), tolerant, "Running"),
            pod("going", deleted, scratch(), "Running"),
            pod("over", json!({}), scratch(), "Succeeded"),
        ];
        let cost = Cost::of(&pods, &OutOfService::No);
        assert_eq!(cost.no_owner, ["shop/bare"]);
        assert_eq!(cost.scratch, ["shop/bare", "shop/owned"]);
        assert_eq!(cost.staying, ["shop/proxy"]);
    }

    /// The promise of the controller counts, and pods that are already being deleted go too.
    #[test]
    fn pods_of_a_node_that_is_cut_off_run_twice_if_their_controller_forbids_it() {
        let pod = |name: &str, kind: &str, controller: &str, more: Value| -> Pod {
            let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
            let mut pod = json!({
                "metadata": {"namespace": "shop", "name": name, "ownerReferences": [{
                    "apiVersion": group, "kind": kind, "name": controller, "uid": controller,
                    "controller": true,
                }]},
                "spec": {"containers": [], "tolerations": more["tolerations"]},
                "status": {"phase": more["phase"]},
            });
            pod["metadata"]["deletionTimestamp"] = more["deletionTimestamp"].clone();
            serde_json::from_value(pod).expect("a pod")
        };
        let none = || json!({});
        let deleted = || json!({"deletionTimestamp": "2026-01-02T03:04:05Z"});
        let mut tolerant = deleted();
        tolerant["tolerations"] = json!([{"operator": "Exists"}]);
        let mut over = deleted();
        over["phase"] = json!("Failed");
        let pods = [
            pod("db-0", "StatefulSet", "db", none()),
            pod("db-1", "StatefulSet", "db", deleted()),
            pod("db-2", "StatefulSet", "db", tolerant.clone()),
            pod("db-3", "StatefulSet", "db", over),
            pod(
                "db-4",
                "StatefulSet",
                "db",
                json!({"tolerations": tolerant["tolerations"]}),
            ),
            pod("strict", "Job", "strict", none()),
            pod("loose", "Job", "loose", none()),
            pod("plain", "ReplicaSet", "plain", deleted()),
            pod("log", "DaemonSet", "log", deleted()),
        ];
        let jobs = ["strict", "loose"].map(|name| {
            let policy = if name == "strict" {
                "Failed"
            } else {
                "TerminatingOrFailed"
            };
            json!({
                "metadata": {"name": name, "uid": name},
                "spec": {"template": {}, "podReplacementPolicy": policy},
            })
        });
        let sets =
            json!([{"metadata": {"name": "plain", "uid": "plain"}, "spec": {"selector": {}}}]);
        let namespace = NamespaceEvidence {
            jobs: Known::Yes(serde_json::from_value(json!(jobs)).expect("Jobs")),
            replica_sets: Known::Yes(serde_json::from_value(sets).expect("ReplicaSets")),
            ..NamespaceEvidence::default()
        };
        let deleted: Vec<&Pod> = { pods.iter() }
            .filter(|pod| is_deleted(pod, &OutOfService::No))
            .collect();
        let read = BTreeMap::from([("shop".to_owned(), namespace)]);
        let expected = ["shop/db-0", "shop/db-1", "shop/db-2", "shop/strict"];
        assert_eq!(twice(&deleted, &read), expected);
        // What can't be read may promise to run only one.
        assert_eq!(
            twice(&deleted, &BTreeMap::new()),
            [&expected[..], &["shop/loose", "shop/plain"]].concat()
        );
    }
}
