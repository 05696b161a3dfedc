//! A pod, as far as it can be stranded.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::Toleration;
use maintenance_lease::protocol::Instant;

use crate::facts::source::claims;
use crate::wire::instant;

/// The controllers that name each pod anew: a pod of theirs that does not go keeps no other from coming.
const NAME_ANEW: [&str; 4] = ["DaemonSet", "Job", "ReplicaSet", "ReplicationController"];

/// A pod, as far as it can be stranded.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its node.
    pub node: String,
    /// Its deletion, where that was asked for.
    pub deletion: Option<Deletion>,
    /// Who must agree before the object goes.
    pub finalizers: Vec<String>,
    /// Its controller as `Kind/name`.
    pub owner: Option<String>,
    /// Which taints it tolerates.
    pub tolerations: Vec<Toleration>,
    /// The claims whose volumes it uses.
    pub claims: Vec<String>,
    /// All its containers have ended for good.
    pub finished: bool,
}

impl Eq for Pod {}

/// A deletion that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When its grace ends, or ended.
    pub at: Instant,
    /// The kubelet confirmed the end, or somebody forced it: no grace is left in which it might.
    pub confirmed: bool,
}

impl Pod {
    /// Reads it; `None` where it is on no node.
    #[must_use]
    pub fn of(pod: core::Pod) -> Option<Self> {
        let claims = claims(&pod).collect();
        let spec = pod.spec?;
        let metadata = pod.metadata;
        let phase = pod.status.and_then(|status| status.phase);
        Some(Self {
            claims,
            node: spec.node_name.filter(|node| !node.is_empty())?,
            deletion: metadata.deletion_timestamp.map(|at| Deletion {
                at: instant(&at),
                confirmed: metadata.deletion_grace_period_seconds == Some(0),
            }),
            finalizers: metadata.finalizers.unwrap_or_default(),
            owner: metadata.owner_references.and_then(|owners| {
                let controller = owners
                    .into_iter()
                    .find(|owner| owner.controller == Some(true))?;
                Some(format!("{}/{}", controller.kind, controller.name))
            }),
            tolerations: spec.tolerations.unwrap_or_default(),
            finished: matches!(phase.as_deref(), Some("Succeeded" | "Failed")),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
        })
    }

    /// Whether its controller can't replace it before it is gone: a pod of a StatefulSet has a name that
    /// there is only once, and kinds that nobody here knows may do the same.
    #[must_use]
    pub fn holds_its_name(&self) -> bool {
        let kind = self
            .owner
            .as_ref()
            .and_then(|owner| owner.split('/').next());
        kind.is_some_and(|kind| !NAME_ANEW.contains(&kind))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pod: serde_json::Value) -> Option<Pod> {
        Pod::of(serde_json::from_value(pod).expect("a Pod"))
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
        let deletion = Deletion {
            at: Instant::from_micros(60_000_000),
            confirmed: false,
        };
        assert_eq!(pod.deletion, Some(deletion));
        assert!(pod.holds_its_name() && !pod.finished);
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
        let mut pod = read(json!({"metadata": {}, "spec": {"containers": [], "nodeName": "n"}}))
            .expect("it is on a node");
        assert!(!pod.holds_its_name(), "nobody replaces it");
        for (owner, holds) in [
            ("ReplicaSet/web-7d4", false),
            ("DaemonSet/logs", false),
            ("StatefulSet/db", true),
            ("Postgres/db", true),
        ] {
            pod.owner = Some(owner.to_owned());
            assert_eq!(pod.holds_its_name(), holds, "{owner}");
        }
    }
}
