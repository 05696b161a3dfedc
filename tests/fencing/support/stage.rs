//! A cluster that detects unreachable nodes within seconds, in which each test has its own nodes.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use control_plane::{ControlPlane, CsiDriver, Kubelets, NodeSpec, Readiness};
use http::Method;
use kube::Resource as _;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::cluster::{Cluster, LEASES};
use super::heartbeat::Heart;
use super::proxy::{Proxy, Treatment};
use super::run::Maint;

/// The age of the last heartbeat of an unreachable node.
pub(crate) const HEARTBEAT_AGE: Duration = Duration::from_secs(300);

/// Longer than anything that a test waits for.
const TIME_LIMIT: Duration = Duration::from_secs(120);

const ZONE: &str = "topology.kubernetes.io/zone";

/// The path of all VolumeAttachments.
pub(crate) const VOLUME_ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// A control plane that is started when the first test needs it.
pub(crate) type Plane = OnceLock<Result<ControlPlane, String>>;

/// A test's part of the cluster. Names begin with the test's prefix, and a zone and a namespace have its name.
pub(crate) struct Stage {
    pub(crate) plane: &'static ControlPlane,
    cluster: Cluster,
    own: String,
    /// The kubelets of the healthy nodes.
    kubelets: Option<Kubelets>,
    hearts: RefCell<Vec<Heart>>,
    drivers: RefCell<Vec<CsiDriver>>,
}

impl Stage {
    pub(crate) fn new(prefix: &str) -> Self {
        static PLANE: Plane = OnceLock::new();
        Self::on(&PLANE, prefix)
    }

    /// A stage on another control plane, for tests that count all nodes of a cluster.
    pub(crate) fn on(plane: &'static Plane, prefix: &str) -> Self {
        let plane = plane
            .get_or_init(|| {
                let plane = ControlPlane::builder().for_unreachable_nodes().start();
                plane.map_err(|error| format!("{error:#}"))
            })
            .as_ref()
            .unwrap_or_else(|error| panic!("no control plane for this test: {error}"));
        Self {
            plane,
            cluster: Cluster::of_plane(prefix, plane),
            own: prefix.to_owned(),
            kubelets: None,
            hearts: RefCell::default(),
            drivers: RefCell::default(),
        }
    }

    /// A zone with an unreachable node, whose name is returned, and two healthy nodes. The unreachable node has no
    /// kubelet, so its state does not change by itself.
    pub(crate) fn with_unreachable_node(prefix: &str) -> (Self, String) {
        let mut stage = Self::new(prefix);
        let unreachable = stage.name("worker-1");
        let node = NodeSpec {
            name: unreachable.clone(),
            ready: Readiness::Unknown,
            heartbeat_age: HEARTBEAT_AGE,
            labels: [(ZONE.to_owned(), prefix.to_owned())].into(),
            ..NodeSpec::default()
        };
        stage.plane.create_nodes(&[node]).expect("a node");
        let well = ["worker-2", "worker-3"].map(|name| stage.name(name));
        let kubelets = stage.kubelets(&well.each_ref().map(String::as_str));
        stage.kubelets = Some(kubelets);
        let status = json!({"status": {
            "nodeInfo": {"bootID": "boot-1"},
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.7"},
                {"type": "Hostname", "address": unreachable},
            ],
        }});
        stage.patch_status(&unreachable, &status);
        stage.patch_node(&unreachable, &json!({"spec": {"providerID": "rack://7"}}));
        (stage, unreachable)
    }

    /// Keeps these kubelets running until the test ends.
    pub(crate) fn keep(&mut self, kubelets: Kubelets) {
        self.kubelets = Some(kubelets);
    }

    /// Starts a CSI driver of this test, which runs until the test ends. Returns its name.
    pub(crate) fn driver(&self, short: &str, attach_required: bool) -> String {
        let name = format!("{}.example.com", self.name(short));
        let driver = self.plane.csi_driver(&name, attach_required);
        self.drivers.borrow_mut().push(driver.expect("a driver"));
        name
    }

    /// Creates nodes with kubelets in the zone of the test.
    pub(crate) fn kubelets(&self, nodes: &[&str]) -> Kubelets {
        let zone = [(ZONE, self.own())];
        self.plane.kubelets(nodes, &zone).expect("nodes")
    }

    pub(crate) fn name(&self, short: &str) -> String {
        self.cluster.name(short)
    }

    /// The name of the zone and namespace of the test.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// A temporary directory, deleted at the end of the test.
    pub(crate) fn directory(&self) -> &Path {
        self.cluster.directory()
    }

    /// A run of the plugin as alice.
    pub(crate) fn maint<S: AsRef<str>>(&self, arguments: impl IntoIterator<Item = S>) -> Maint {
        self.cluster.maint(arguments).env("PATH", "/usr/bin:/bin")
    }

    /// A kubeconfig for a user with the roles of a fencer, and no other rights.
    pub(crate) fn fencer(&self, name: &str) -> PathBuf {
        let [namespace, rbac] = [
            concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/namespace.yaml"),
            concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/rbac.yaml"),
        ];
        self.kubectl(&["apply", "-f", namespace, "-f", rbac]);
        let groups = ["kubectl-maint:users", "kubectl-maint:fencers"];
        let user = self.plane.user(&self.name(name), &groups);
        for resource in ["pods", "statefulsets.apps", "persistentvolumeclaims"] {
            let fencers = ["kubectl-maint:fencers"];
            let allowed = self.plane.await_allowed(&fencers, "list", resource, "");
            allowed.expect("it is granted");
        }
        user.expect("a kubeconfig")
    }

    /// A proxy in front of the cluster. For each request, `plan` chooses the treatment by method and path.
    pub(crate) fn proxy(
        &self,
        plan: impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static,
    ) -> Proxy {
        self.cluster.proxy(plan)
    }

    /// Fences `node` with `--powered-off`, as alice.
    pub(crate) fn fence(&self, node: &str) {
        self.maint(["fence", node, "--powered-off=dark"]).succeeds();
    }

    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(arguments).expect("kubectl succeeds")
    }

    #[track_caller]
    pub(crate) fn node(&self, name: &str) -> Value {
        self.cluster.get(&node_path(name))
    }

    /// The object at this path, if it exists.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.cluster.find(path)
    }

    /// The items of the list at this path.
    #[track_caller]
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.cluster.get(path);
        serde_json::from_value(list["items"].take()).expect("items")
    }

    /// The pod of this name in the namespace of the test, if it exists.
    #[track_caller]
    pub(crate) fn find_pod(&self, name: &str) -> Option<Value> {
        self.get(&format!("/api/v1/namespaces/{}/pods/{name}", self.own()))
    }

    /// The pods in the namespace of the test with this label, or all pods if `label` is empty.
    #[track_caller]
    pub(crate) fn pods_with(&self, label: &str) -> Vec<Value> {
        self.list(&format!(
            "/api/v1/namespaces/{}/pods?labelSelector={label}",
            self.own()
        ))
    }

    /// Creates these objects.
    #[track_caller]
    pub(crate) fn create(&self, objects: &[Value]) {
        for object in objects {
            let described: DynamicObject =
                serde_json::from_value(object.clone()).expect("an object");
            let kind = described.types.as_ref().expect("a kind");
            let kind = GroupVersionKind::try_from(kind).expect("a version");
            let kind = ApiResource::from_gvk(&kind);
            let path = DynamicObject::url_path(&kind, described.metadata.namespace.as_deref());
            let path = format!("{path}?fieldValidation=Strict&fieldManager=kubectl-create");
            self.cluster.create(&path, object);
        }
    }

    /// The manifest of the namespace of the test.
    pub(crate) fn namespace(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.own()}})
    }

    /// The manifest of a pod on `node`, in the namespace of the test.
    pub(crate) fn pod(&self, name: &str, node: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": self.own()},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]},
        })
    }

    /// Creates the namespace of the test, and a pod on `node` that stays when it is deleted, because of a finalizer.
    pub(crate) fn create_pod_that_stays(&self, node: &str) {
        let mut pod = self.pod("stays", node);
        pod["metadata"]["finalizers"] = json!(["example.com/backup"]);
        self.create(&[self.namespace(), pod]);
    }

    #[track_caller]
    pub(crate) fn patch_node(&self, name: &str, patch: &Value) {
        self.cluster.patch(&node_path(name), patch);
    }

    #[track_caller]
    pub(crate) fn patch_status(&self, node: &str, patch: &Value) {
        let path = format!("{}/status", node_path(node));
        self.cluster.patch(&path, patch);
    }

    /// Changes fields in the spec of the node's heartbeat.
    #[track_caller]
    pub(crate) fn patch_heartbeat(&self, node: &str, spec: &Value) {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}");
        self.cluster.patch(&path, &json!({"spec": spec}));
    }

    /// Sends one heartbeat of the node, with this time by the node's own clock.
    #[track_caller]
    pub(crate) fn beats_at(&self, node: &str, time: DateTime<Utc>) {
        let time = time.to_rfc3339_opts(SecondsFormat::Micros, true);
        self.patch_heartbeat(node, &json!({"renewTime": time}));
    }

    /// The node sends heartbeats again, with this boot ID.
    pub(crate) fn comes_back(&self, node: &str, boot_id: &str) {
        let status = json!({"status": {"nodeInfo": {"bootID": boot_id}}});
        self.patch_status(node, &status);
        self.beats(node);
    }

    /// Starts heartbeats of the node. The Node object does not change.
    pub(crate) fn beats(&self, node: &str) {
        self.hearts.borrow_mut().push(Heart::of(node, self.plane));
    }

    /// Stops the heartbeats of a healthy node, and waits until the control plane reports it unreachable.
    pub(crate) fn stops_heartbeats(&self, node: &str) {
        let kubelets = self.kubelets.as_ref().expect("nodes that are well");
        kubelets
            .stop_heartbeats(node, HEARTBEAT_AGE)
            .expect("its heartbeats stop");
        self.is_reported_unreachable(node);
    }

    /// Waits until the control plane has reported the node unreachable.
    pub(crate) fn is_reported_unreachable(&self, node: &str) {
        eventually("the node is reported unreachable", || {
            let node = self.node(node);
            let mut conditions = node["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            conditions
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "Unknown")
        });
    }

    /// The Lease of the node's lock.
    pub(crate) fn lease(&self, node: &str) -> Option<Value> {
        self.get(&format!("{LEASES}/{node}"))
    }

    /// Ends the node's lock by hand, without our annotations.
    #[track_caller]
    pub(crate) fn frees(&self, node: &str) {
        let free = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        self.cluster.patch(&format!("{LEASES}/{node}"), &free);
    }

    /// Deletes the node's lock by hand.
    #[track_caller]
    pub(crate) fn deletes_lease(&self, node: &str) {
        self.cluster.delete(&format!("{LEASES}/{node}"));
    }

    /// The holder of the node's lock.
    pub(crate) fn holder(&self, node: &str) -> Option<String> {
        let lease = self.lease(node)?;
        let holder = lease["spec"]["holderIdentity"].as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// The fencing record on the Node.
    pub(crate) fn record(&self, node: &str) -> Option<Value> {
        self.annotation(node, "kubectl-maint.dev/fenced")
    }

    /// The hook annotation on the Node.
    pub(crate) fn hook(&self, node: &str) -> Option<Value> {
        self.annotation(node, "kubectl-maint.dev/hook")
    }

    /// The flag that says that the hook in the annotation has ended.
    #[track_caller]
    pub(crate) fn resume(&self, node: &str) -> String {
        let hook = self.hook(node).expect("a hook");
        format!("--resume={}", hook["id"].as_str().expect("an id"))
    }

    fn annotation(&self, node: &str, name: &str) -> Option<Value> {
        let node = self.node(node);
        let text = node["metadata"]["annotations"][name].as_str()?;
        Some(serde_json::from_str(text).expect("JSON"))
    }

    /// Writes an annotation of the Node by hand.
    pub(crate) fn annotate(&self, node: &str, name: &str, value: &Value) {
        let annotations = json!({name: value.to_string()});
        self.patch_node(node, &json!({"metadata": {"annotations": annotations}}));
    }

    /// Whether the Node has the out-of-service taint.
    pub(crate) fn is_tainted(&self, node: &str) -> bool {
        self.taint(node).is_some()
    }

    /// The out-of-service taint of the Node.
    pub(crate) fn taint(&self, node: &str) -> Option<Value> {
        let node = self.node(node);
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let ours = taints.find(|taint| {
            taint["key"] == "node.kubernetes.io/out-of-service"
                && taint["value"] == "nodeshutdown"
                && taint["effect"] == "NoExecute"
        });
        ours.cloned()
    }

    /// Asserts that nothing of a fencing is left: no record, no hook, no taint, no label, no lock.
    #[track_caller]
    pub(crate) fn is_untouched(&self, node: &str) {
        assert_eq!(self.record(node), None);
        assert_eq!(self.hook(node), None);
        assert!(!self.is_tainted(node));
        let label = &self.node(node)["metadata"]["labels"]["kubectl-maint.dev/held"];
        assert_eq!(*label, Value::Null);
        assert_eq!(self.holder(node), None);
    }
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// Waits until `is_so` returns true.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came that {what}");
        thread::sleep(Duration::from_millis(100));
    }
}
