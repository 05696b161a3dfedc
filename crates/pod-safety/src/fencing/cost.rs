//! What is lost if a node is fenced, and which pods stay on it.

use k8s_openapi::api::core::v1::Pod;

use super::remains::stays;
use crate::constants::{OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE};
use crate::controller::{Kind, controller};
use crate::facts::Blocked;
use crate::facts::pod::{full_name, has_ended};
use crate::facts::source::volumes;
use crate::taint::{NoExecute, OutOfService};

/// What fencing costs, as lists of pods (`NAMESPACE/NAME`). Except in `blocked`, pods that are already being
/// deleted are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Pods that nothing recreates, because they have no controller.
    pub no_owner: Vec<String>,
    /// Pods that lose the data of an emptyDir.
    pub scratch: Vec<String>,
    /// Pods that may run twice although their controller promises to run only one, because the node is only
    /// cut off.
    pub twice: Vec<String>,
    /// Pods that stay, because they tolerate the taint or are static.
    pub staying: Vec<String>,
    /// Pods that leave, and whose replacements will not be created or will not run, as far as this could be
    /// read. Includes pods that are already being deleted.
    pub blocked: Vec<Blocked>,
}

impl Cost {
    /// What is lost if a node with these `pods` is fenced, or only cut off if `isolated`. `taint` is the
    /// out-of-service taint that the node already has.
    #[must_use]
    pub fn of(pods: &[Pod], taint: &OutOfService, isolated: bool) -> Self {
        let mut cost = Self::default();
        for pod in pods {
            if pod.metadata.deletion_timestamp.is_some() || has_ended(pod) {
                continue;
            }
            if !leaves(pod, taint) {
                cost.staying.push(full_name(pod));
                continue;
            }
            match controller(&pod.metadata) {
                None => cost.no_owner.push(full_name(pod)),
                Some(owner) if isolated && Kind::of(owner).holds_names() => {
                    cost.twice.push(full_name(pod));
                }
                Some(_) => {}
            }
            if volumes(pod).any(|volume| volume.empty_dir.is_some()) {
                cost.scratch.push(full_name(pod));
            }
        }
        cost
    }
}

/// Whether `pod` is still running, as far as known, and leaves its node once the node is fenced.
pub(crate) fn leaves(pod: &Pod, taint: &OutOfService) -> bool {
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
        assert_eq!(cost.twice, [""; 0]);
        let isolated = Cost::of(&pods, &OutOfService::No, true);
        assert_eq!(isolated.twice, ["shop/db-0"]);
    }
}
