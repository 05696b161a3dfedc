//! Objects that exist before the first request: namespaces, nodes, and objects of a test.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::rules::time;

/// A node with a running kubelet.
///
/// ```
/// use sandbox::{Node, Sandbox};
///
/// let sandbox = Sandbox::new();
/// sandbox.add_node("worker-1");
/// sandbox.add_node(Node::named("worker-2").label("pool", "spot").cordoned().not_ready());
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    labels: Map<String, Value>,
    cordoned: bool,
    ready: bool,
}

impl Node {
    /// A Ready node.
    pub fn named(name: &str) -> Self {
        let labels = json!({
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        });
        Self {
            name: name.to_owned(),
            labels: labels.as_object().cloned().unwrap_or_default(),
            cordoned: false,
            ready: true,
        }
    }

    /// The nodes of a small cluster for experiments. None is cordoned, because that could look like the effect of a
    /// lock.
    pub fn small_cluster() -> [Self; 4] {
        [
            Self::named("control-plane-1"),
            Self::named("worker-1").label("pool", "general"),
            Self::named("worker-2").label("pool", "general"),
            Self::named("worker-3").label("pool", "gpu"),
        ]
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.into());
        self
    }

    /// Cordons the node.
    pub fn cordoned(mut self) -> Self {
        self.cordoned = true;
        self
    }

    /// The kubelet is unreachable: the Ready condition is unknown.
    pub fn not_ready(mut self) -> Self {
        self.ready = false;
        self
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Node object at `now`.
    pub(crate) fn to_object(&self, now: DateTime<Utc>) -> Value {
        let now = time::seconds(now);
        let (status, reason, message) = if self.ready {
            ("True", "KubeletReady", "kubelet is posting ready status")
        } else {
            (
                "Unknown",
                "NodeStatusUnknown",
                "Kubelet stopped posting node status.",
            )
        };
        let mut spec = Map::new();
        let mut taints = Vec::new();
        if self.cordoned {
            spec.insert("unschedulable".to_owned(), true.into());
            taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
        }
        if !self.ready {
            for effect in ["NoSchedule", "NoExecute"] {
                taints.push(json!({"key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": now}));
            }
        }
        if !taints.is_empty() {
            spec.insert("taints".to_owned(), taints.into());
        }
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": spec,
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.1.0.1"},
                    {"type": "Hostname", "address": self.name},
                ],
                "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "conditions": [{
                    "type": "Ready",
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": "",
                    "containerRuntimeVersion": "containerd://2.1.4",
                    "kernelVersion": "6.12.0",
                    "kubeProxyVersion": "",
                    "kubeletVersion": "v1.36.3",
                    "machineID": "",
                    "operatingSystem": "linux",
                    "osImage": "Debian GNU/Linux 13 (trixie)",
                    "systemUUID": "",
                },
            },
        })
    }
}

impl From<&str> for Node {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

/// The namespace of the kubelets' Leases.
pub(crate) const HEARTBEATS: &str = "kube-node-lease";

/// The Lease of the kubelet, which shows that the node is alive.
pub(crate) fn heartbeat(node: &str, uid: &str, now: DateTime<Utc>) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node,
            "namespace": HEARTBEATS,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid},
            ],
        },
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": 40,
            "renewTime": time::micros(now),
        },
    })
}

/// A namespace as the server stores it.
pub(crate) fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_to_try_things_on_take_new_pods() {
        assert!(Node::small_cluster().iter().all(|node| !node.cordoned));
    }
}
