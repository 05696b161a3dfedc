//! A pod, as far as it can be stranded.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::Toleration;

use crate::facts::PodSight;
use crate::facts::owner::{Kind, controller, shown_as};
use crate::facts::source::claims;

/// A pod, as far as it can be stranded.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// The pod itself.
    pub sight: PodSight,
    /// Its controller as `Kind/name`.
    pub owner: Option<String>,
    /// Its controller can't replace it before it is gone.
    pub holds_its_name: bool,
    /// Which taints it tolerates.
    pub tolerations: Vec<Toleration>,
    /// The claims whose volumes it uses.
    pub claims: Vec<String>,
    /// All its containers have ended for good.
    pub finished: bool,
}

impl Eq for Pod {}

impl Pod {
    /// Reads it; `None` if it is on no node.
    #[must_use]
    pub fn of(pod: &core::Pod) -> Option<Self> {
        let sight = PodSight::of(pod);
        let controller = controller(&pod.metadata);
        let spec = pod.spec.as_ref();
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        (!sight.node.is_empty()).then(|| Self {
            sight,
            owner: controller.map(shown_as),
            holds_its_name: controller.is_some_and(|owner| Kind::of(owner).holds_names()),
            tolerations: spec
                .and_then(|spec| spec.tolerations.clone())
                .unwrap_or_default(),
            claims: claims(pod).collect(),
            finished: matches!(phase, Some("Succeeded" | "Failed")),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pod: serde_json::Value) -> Option<Pod> {
        Pod::of(&serde_json::from_value(pod).expect("a Pod"))
    }

    #[test]
    fn it_is_read_as_the_server_sends_it() {
        let pod = read(json!({
            "metadata": {
                "namespace": "apps",
                "name": "web-0",
                "deletionTimestamp": "1970-01-01T00:01:00Z",
                "deletionGracePeriodSeconds": 30,
                "finalizers": ["example.com/backup"],
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Other", "name": "other", "uid": "1"},
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "2",
                        "controller": true},
                ],
            },
            "spec": {
                "containers": [],
                "nodeName": "worker-1",
                "volumes": [
                    {"name": "config", "configMap": {"name": "web"}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
                    {"name": "scratch", "ephemeral": {}},
                ],
            },
            "status": {"phase": "Running"},
        }))
        .expect("it is on a node");
        assert_eq!(pod.claims, ["data-web-0", "web-0-scratch"]);
        assert_eq!(pod.owner.as_deref(), Some("StatefulSet/web"));
        assert_eq!(pod.sight.name, "web-0");
        assert!(pod.holds_its_name && !pod.finished);
    }

    #[test]
    fn what_waits_for_a_node_is_not_stranded() {
        assert_eq!(
            read(json!({"metadata": {"name": "a"}, "spec": {"containers": []}})),
            None
        );
    }

    #[test]
    fn only_controllers_that_need_the_name_wait_for_it() {
        let holds = |owners: serde_json::Value| {
            let pod = read(json!({
                "metadata": {"ownerReferences": owners},
                "spec": {"containers": [], "nodeName": "n"},
            }));
            pod.expect("it is on a node").holds_its_name
        };
        assert!(!holds(json!([])), "nobody replaces it");
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
            assert_eq!(holds(owner), expected, "{version} {kind}");
        }
    }
}
