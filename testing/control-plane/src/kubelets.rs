//! Stand-ins for kubelets, which can stop sending heartbeats and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::{Answer, Api};
use crate::nodes::NODE_LEASES;
use crate::plane::ControlPlane;

/// How often the kubelets check their pods and renew their heartbeats.
const PERIOD: Duration = Duration::from_millis(500);

/// The kubelets of some nodes, as far as a control plane sees them. They register their node with a boot ID, and renew
/// its heartbeat. They report pods as running and ready once their volumes are attached, and finish the deletion of
/// pods. They also report the volumes in use.
///
/// The test decides which pod runs on which node: [`ControlPlane::bind_pod`].
///
/// All kubelets end when this is dropped.
#[derive(Debug)]
pub struct Kubelets {
    orders: Option<Sender<(Order, Sender<Result<()>>)>>,
    thread: Option<JoinHandle<()>>,
}

/// How a node comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// It was only disconnected: the same boot is still running.
    SameBoot,
    /// It was rebooted.
    Rebooted,
}

#[derive(Debug)]
enum Order {
    StopHeartbeats { node: String, since: Duration },
    Return { node: String, how: Return },
}

impl ControlPlane {
    /// Registers nodes with these names and labels, and renews their heartbeats.
    ///
    /// # Errors
    /// If the API server refuses, for example because a node with that name exists.
    pub fn kubelets(&self, nodes: &[&str], labels: &[(&str, &str)]) -> Result<Kubelets> {
        let mut work = Heartbeats {
            api: self.api().clone(),
            nodes: BTreeMap::new(),
        };
        for node in nodes {
            work.register(node, labels)?;
        }
        let (orders, received) = channel();
        let thread = thread::Builder::new()
            .name("kubelets".to_owned())
            .spawn(move || work.run(&received))?;
        Ok(Kubelets {
            orders: Some(orders),
            thread: Some(thread),
        })
    }

    /// Binds a pod to a node, as a scheduler does.
    ///
    /// # Errors
    /// If the pod does not exist, or already has a node.
    pub fn bind_pod(&self, namespace: &str, pod: &str, node: &str) -> Result<()> {
        let binding = json!({
            "metadata": {"name": pod, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.api()
            .post(
                &format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding"),
                &binding,
            )
            .map(drop)
            .with_context(|| format!("failed to bind pod {pod} to {node}"))
    }
}

impl Kubelets {
    /// Stops the kubelet of a node, and sets its last heartbeat to `since` ago.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn stop_heartbeats(&self, node: &str, since: Duration) -> Result<()> {
        let node = node.to_owned();
        self.order(Order::StopHeartbeats { node, since })
    }

    /// Brings an unreachable node back, and reports it as ready.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn bring_back(&self, node: &str, how: Return) -> Result<()> {
        let node = node.to_owned();
        self.order(Order::Return { node, how })
    }

    /// Sends an order, and waits until it was carried out.
    fn order(&self, order: Order) -> Result<()> {
        let (done, result) = channel();
        self.orders
            .as_ref()
            .expect("it is there until it is dropped")
            .send((order, done))
            .ok()
            .context("the stand-ins for kubelets have ended")?;
        result
            .recv()
            .context("the stand-ins for kubelets have ended")?
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its test has already failed.
            let _ = thread.join();
        }
    }
}

struct Kubelet {
    boot_id: String,
    unreachable: bool,
}

struct Heartbeats {
    api: Api,
    nodes: BTreeMap<String, Kubelet>,
}

impl Heartbeats {
    fn run(mut self, orders: &Receiver<(Order, Sender<Result<()>>)>) {
        loop {
            match orders.recv_timeout(PERIOD) {
                Ok((order, done)) => {
                    let _caller_gone = done.send(self.carry_out(order));
                }
                Err(RecvTimeoutError::Timeout) => self.look_after_all(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn register(&mut self, name: &str, labels: &[(&str, &str)]) -> Result<()> {
        let boot_id = new_boot_id();
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let node = json!({
            "metadata": {
                "name": name,
                "labels": labels,
                // A controller attaches the volumes of this node, not the kubelet.
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            },
            "spec": {"providerID": format!("stand-in://{name}")},
        });
        let node = self
            .api
            .post("/api/v1/nodes", &node)
            .with_context(|| format!("failed to register {name}"))?;
        let lease = json!({
            "metadata": {
                "name": name,
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Node",
                    "name": name, "uid": node["metadata"]["uid"],
                }],
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 40,
                "renewTime": micros(Timestamp::now()),
            },
        });
        self.api.post(NODE_LEASES, &lease)?;
        self.report(name, &boot_id)?;
        let kubelet = Kubelet {
            boot_id,
            unreachable: false,
        };
        self.nodes.insert(name.to_owned(), kubelet);
        Ok(())
    }

    fn carry_out(&mut self, order: Order) -> Result<()> {
        match order {
            Order::StopHeartbeats { node, since } => {
                self.kubelet(&node)?.unreachable = true;
                let last = Timestamp::now() - SignedDuration::try_from(since)?;
                self.beat(&node, last)?;
            }
            Order::Return { node, how } => {
                let kubelet = self.kubelet(&node)?;
                if how == Return::Rebooted {
                    kubelet.boot_id = new_boot_id();
                }
                kubelet.unreachable = false;
                let boot_id = kubelet.boot_id.clone();
                self.beat(&node, Timestamp::now())?;
                self.report(&node, &boot_id)?;
            }
        }
        Ok(())
    }

    fn kubelet(&mut self, node: &str) -> Result<&mut Kubelet> {
        self.nodes
            .get_mut(node)
            .with_context(|| format!("no stand-in for the kubelet of {node}"))
    }

    /// A failed request is retried in the next round, as kubelets do.
    fn look_after_all(&self) {
        let alive: BTreeSet<&str> = self
            .nodes
            .iter()
            .filter(|(_, kubelet)| !kubelet.unreachable)
            .map(|(name, _)| name.as_str())
            .collect();
        for node in &alive {
            let _next_round = self.beat(node, Timestamp::now());
        }
        let pods = self.api.get("/api/v1/pods").unwrap_or_default();
        let mut with_volumes = BTreeSet::new();
        for pod in items(&pods) {
            let Some(&node) = alive.get(pod["spec"]["nodeName"].as_str().unwrap_or_default())
            else {
                continue;
            };
            let _next_round = self.look_after(pod);
            let volumes = pod["spec"]["volumes"].as_array();
            if volumes.is_some_and(|volumes| {
                volumes
                    .iter()
                    .any(|volume| volume["persistentVolumeClaim"].is_object())
            }) {
                with_volumes.insert(node);
            }
        }
        for node in alive {
            let _next_round = self.look_after_node(node, with_volumes.contains(node));
        }
    }

    fn look_after(&self, pod: &Value) -> Answer {
        let meta = &pod["metadata"];
        let name = meta["name"].as_str().unwrap_or_default();
        let namespace = meta["namespace"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        if meta["deletionTimestamp"].is_string() {
            return self.api.delete(
                &path,
                &json!({"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}),
            );
        }
        if pod["status"]["phase"] != "Pending" || !self.has_volumes(pod)? {
            return Ok(Value::Null);
        }
        let now = seconds(Timestamp::now());
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let containers: Vec<Value> = pod["spec"]["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|container| {
                json!({
                    "name": container["name"], "image": container["image"], "imageID": "",
                    "ready": true, "started": true, "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                })
            })
            .collect();
        let status = json!({"metadata": {"uid": meta["uid"]}, "status": {
            "phase": "Running",
            "startTime": now,
            "conditions": [condition("Initialized"), condition("Ready"),
                condition("ContainersReady"), condition("PodScheduled")],
            "containerStatuses": containers,
        }});
        self.api.patch(&format!("{path}/status"), &status)
    }

    /// Whether all volumes of a pod that need to be attached to its node are attached.
    fn has_volumes(&self, pod: &Value) -> Result<bool, kube::Error> {
        let mut node = None;
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() else {
                continue;
            };
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
            let claim = self.api.get(&format!(
                "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}"
            ))?;
            let Some(bound) = claim["spec"]["volumeName"].as_str() else {
                return Ok(false);
            };
            let volume = self
                .api
                .get(&format!("/api/v1/persistentvolumes/{bound}"))?;
            let Some(name) = self.attached_as(&volume["spec"])? else {
                continue;
            };
            if node.is_none() {
                let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
                node = Some(self.api.get(&format!("/api/v1/nodes/{name}"))?);
            }
            let status = node.as_ref().map(|node| &node["status"]["volumesAttached"]);
            let mut attached = status.and_then(Value::as_array).into_iter().flatten();
            if !attached.any(|one| one["name"] == name) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The name under which a volume with this spec is attached to a node. `None` if it is not attached.
    fn attached_as(&self, volume: &Value) -> Result<Option<String>, kube::Error> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (csi, iscsi) = (&volume["csi"], &volume["iscsi"]);
        if csi.is_object() {
            let driver = text(&csi["driver"]);
            let object = self
                .api
                .get(&format!("/apis/storage.k8s.io/v1/csidrivers/{driver}"))?;
            let name = format!("kubernetes.io/csi/{driver}^{}", text(&csi["volumeHandle"]));
            return Ok((object["spec"]["attachRequired"] == true).then_some(name));
        }
        Ok(iscsi.is_object().then(|| {
            let (portal, iqn) = (text(&iscsi["targetPortal"]), text(&iscsi["iqn"]));
            format!("kubernetes.io/iscsi/{portal}:{iqn}:{}", iscsi["lun"])
        }))
    }

    fn beat(&self, node: &str, at: Timestamp) -> Answer {
        let renewal = json!({"spec": {"renewTime": micros(at)}});
        self.api.patch(&format!("{NODE_LEASES}/{node}"), &renewal)
    }

    fn report(&self, node: &str, boot_id: &str) -> Answer {
        let now = seconds(Timestamp::now());
        let status = json!({"status": {
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.7"},
                {"type": "Hostname", "address": node},
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux",
                "bootID": boot_id, "machineID": "", "systemUUID": "",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.0", "osImage": "Debian GNU/Linux 13 (trixie)",
                "kubeletVersion": crate::KUBERNETES_VERSION, "kubeProxyVersion": "",
            },
        }});
        self.api
            .patch(&format!("/api/v1/nodes/{node}/status"), &status)
    }

    /// Reports the node as ready again if the control plane has reported it unreachable, for example after a pause of
    /// the machine. Also reports the volumes in use: if there are pods, all attached volumes.
    fn look_after_node(&self, node: &str, has_pods: bool) -> Answer {
        let path = format!("/api/v1/nodes/{node}");
        let status = &self.api.get(&path)?["status"];
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        if !is_ready && let Some(kubelet) = self.nodes.get(node) {
            self.report(node, &kubelet.boot_id)?;
        }
        let attached = status["volumesAttached"].as_array();
        let in_use: Vec<Value> = attached
            .into_iter()
            .flatten()
            .filter(|_| has_pods)
            .map(|volume| volume["name"].clone())
            .collect();
        let reported = status["volumesInUse"].as_array();
        if reported.map_or(&[][..], Vec::as_slice) == in_use {
            return Ok(Value::Null);
        }
        let status = json!({"status": {"volumesInUse": in_use}});
        self.api.patch(&format!("{path}/status"), &status)
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn new_boot_id() -> String {
    let random = fastrand::u128(..);
    format!("{random:032x}")
}

fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}
