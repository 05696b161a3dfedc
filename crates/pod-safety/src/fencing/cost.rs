//! What is lost if a node is fenced, and which pods stay on it.

use k8s_openapi::api::core::v1::Pod;

use super::remains::stays;
use crate::bugs::{self, Bug};
use crate::constants::{OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE};
use crate::controller::{Kind, controller};
use crate::facts::pod::{full_name, has_ended};
use crate::facts::source::volumes;
use crate::taint::{NoExecute, OutOfService};

/// What fencing costs, as lists of pods (`NAMESPACE/NAME`). Except in `twice`, pods that are already being
/// deleted are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Pods that nothing recreates, because they have no controller.
    pub no_owner: Vec<String>,
    /// Pods that lose the data of an emptyDir.
    pub scratch: Vec<String>,
    /// Pods that may run twice although their controller may promise to run only one, because the node is only
    /// cut off. Includes pods that are already being deleted.
    pub twice: Vec<String>,
    /// Pods that stay, because they tolerate the taint or are static.
    pub staying: Vec<String>,
}

impl Cost {
    /// What is lost if a node with these `pods` is fenced. `taint` is the out-of-service taint that the node
    /// already has.
    #[must_use]
    pub fn of(pods: &[Pod], taint: &OutOfService, is_only_cut_off: bool) -> Self {
        let mut cost = Self::default();
        for pod in pods {
            if is_only_cut_off && is_deleted(pod, taint) && may_be_the_only_one(pod) {
                cost.twice.push(full_name(pod));
            }
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
fn is_deleted(pod: &Pod, taint: &OutOfService) -> bool {
    match pod.metadata.deletion_timestamp {
        Some(_) => !has_ended(pod) && !bugs::active(Bug::EndingIsGone),
        None => leaves(pod, taint),
    }
}

/// Whether the controller of `pod` may promise that it does not run beside its replacement. A Job decides this
/// itself, and nothing is known about other kinds.
fn may_be_the_only_one(pod: &Pod) -> bool {
    let kind = controller(&pod.metadata).map(Kind::of);
    matches!(kind, Some(Kind::StatefulSet | Kind::Job | Kind::Other))
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
        let cost = Cost::of(&pods, &OutOfService::No, false);
        assert_eq!(cost.no_owner, ["shop/bare"]);
        assert_eq!(cost.scratch, ["shop/bare", "shop/owned"]);
        assert_eq!(cost.staying, ["shop/proxy"]);
    }

    /// Pods that are already being deleted are deleted too.
    #[test]
    fn pods_of_a_node_that_is_cut_off_may_run_twice() {
        let pod = |name: &str, kind: &str, more: Value| -> Pod {
            let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
            let mut pod = json!({
                "metadata": {"namespace": "shop", "name": name, "ownerReferences": [{
                    "apiVersion": group, "kind": kind, "name": "web", "uid": "web", "controller": true,
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
            pod("db-0", "StatefulSet", none()),
            pod("db-1", "StatefulSet", deleted()),
            pod("db-2", "StatefulSet", tolerant.clone()),
            pod("db-3", "StatefulSet", over),
            pod(
                "db-4",
                "StatefulSet",
                json!({"tolerations": tolerant["tolerations"]}),
            ),
            pod("copy", "Job", none()),
            pod("backup", "Backup", none()),
            pod("plain", "ReplicaSet", deleted()),
            pod("log", "DaemonSet", deleted()),
        ];
        let twice = |is_cut_off| Cost::of(&pods, &OutOfService::No, is_cut_off).twice;
        let expected = [
            "shop/db-0",
            "shop/db-1",
            "shop/db-2",
            "shop/copy",
            "shop/backup",
        ];
        assert_eq!(twice(true), expected);
        assert_eq!(twice(false), [""; 0]);
    }
}
