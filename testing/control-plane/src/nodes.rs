//! Nodes without kubelets.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::request;
use crate::plane::ControlPlane;

pub(crate) const NODE_LEASES: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// The number of parallel requests: enough to keep the API server of a small machine busy, and few enough for its
/// connections.
const PARALLEL: usize = 32;

/// A node's Ready condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Readiness {
    /// `True`: the kubelet reports that the node is ready.
    #[default]
    Ready,
    /// `False`: the kubelet is alive, and reports a problem.
    NotReady,
    /// `Unknown`: the kubelet has sent no heartbeat for some time.
    Unknown,
}

/// A node to be created.
#[derive(Debug, Clone, Default)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its Ready condition.
    pub ready: Readiness,
    /// The age of the kubelet's last heartbeat. A controller manager reports a node as unknown after it has itself seen
    /// no heartbeat for its grace period. Here, that is one day by default.
    pub heartbeat_age: Duration,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Its labels, in addition to those that every kubelet sets (host name, architecture, operating system).
    pub labels: BTreeMap<String, String>,
    /// How many images its kubelet reports, at most 50 by default. They make up most of the object: 50 take 16 KB.
    pub images: usize,
}

impl NodeSpec {
    /// A healthy node with a current heartbeat.
    #[must_use]
    pub fn ready(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds this label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets the number of images.
    #[must_use]
    pub fn images(mut self, count: usize) -> Self {
        self.images = count;
        self
    }

    fn node(&self, now: Timestamp) -> Value {
        let (status, reason, message) = match self.ready {
            Readiness::Ready => ("True", "KubeletReady", "kubelet is posting ready status"),
            Readiness::NotReady => (
                "False",
                "KubeletNotReady",
                "container runtime network not ready",
            ),
            Readiness::Unknown => (
                "Unknown",
                "NodeStatusUnknown",
                "Kubelet stopped posting node status.",
            ),
        };
        let mut labels = BTreeMap::from([
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/os", "linux"),
        ]);
        labels.extend(
            self.labels
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str())),
        );
        let heartbeat = format!("{:.0}", self.heartbeat(now));
        let images: Vec<Value> = (0..self.images).map(image).collect();
        json!({
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"unschedulable": self.unschedulable},
            "status": {
                "conditions": [{
                    "type": "Ready",
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": heartbeat,
                    "lastTransitionTime": heartbeat,
                }],
                "images": images,
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": "", "machineID": "", "systemUUID": "",
                    "containerRuntimeVersion": "containerd://2.1.4",
                    "kernelVersion": "6.12.0",
                    "kubeletVersion": crate::KUBERNETES_VERSION,
                    "kubeProxyVersion": "",
                    "operatingSystem": "linux",
                    "osImage": "Debian GNU/Linux 13 (trixie)",
                },
            },
        })
    }

    fn heartbeat(&self, now: Timestamp) -> Timestamp {
        SignedDuration::try_from(self.heartbeat_age)
            .ok()
            .and_then(|age| now.checked_sub(age).ok())
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// An image as a kubelet reports it: by digest and by tag.
fn image(number: usize) -> Value {
    let name = format!("registry.example.com/platform/services/component-{number:03}");
    let digest = format!("{number:08x}").repeat(8);
    json!({
        "names": [format!("{name}@sha256:{digest}"), format!("{name}:v1.{number}.0-release.20260101")],
        "sizeBytes": 100_000_000 + number,
    })
}

fn kubelet_lease(name: &str, heartbeat: Timestamp) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": format!("{heartbeat:.6}"),
        },
    })
}

impl ControlPlane {
    /// Creates nodes with a status and a heartbeat, as kubelets do, with many requests in parallel.
    ///
    /// Without a controller manager, they keep the taint `node.kubernetes.io/not-ready` that the API server adds to
    /// every new node.
    ///
    /// # Errors
    /// If the API server refuses, for example because a node with that name exists.
    pub fn create_nodes(&self, nodes: &[NodeSpec]) -> Result<()> {
        let now = Timestamp::now();
        let requests = nodes.iter().flat_map(|node| {
            let lease = kubelet_lease(&node.name, node.heartbeat(now));
            [
                request("POST", "/api/v1/nodes", Some(&node.node(now))),
                request("POST", NODE_LEASES, Some(&lease)),
            ]
        });
        self.api().all(requests.collect(), PARALLEL)
    }

    /// Renews the heartbeats of these nodes, as their kubelets do every ten seconds.
    ///
    /// # Errors
    /// If a node has no heartbeat yet, or the API server refuses.
    pub fn heartbeat<S: AsRef<str>>(&self, nodes: &[S]) -> Result<()> {
        let renewal = json!({"spec": {"renewTime": format!("{:.6}", Timestamp::now())}});
        let requests = nodes.iter().map(|node| {
            request(
                "PATCH",
                &format!("{NODE_LEASES}/{}", node.as_ref()),
                Some(&renewal),
            )
        });
        self.api().all(requests.collect(), PARALLEL)
    }
}
