//! The cluster of a case: the same interface for the sandbox and the real server.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use control_plane::{ControlPlane, Rule};
use futures::TryStreamExt as _;
use http::{Request, StatusCode};
use kube::Client;
use kube::api::WatchEvent;
use maintenance_lease::env::Env;
use maintenance_lease::{Builder, Maintenance};
use sandbox::Sandbox;
use serde_json::{Value, json};

use super::clocks::{StoppedClocks, micros};
use super::runs::kubernetes_client;
use super::wire::Wire;

pub(crate) const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
pub(crate) const NAMESPACE_PATH: &str = "/api/v1/namespaces/kube-node-maintenance";

#[derive(Clone)]
pub(crate) enum Server {
    Sandbox(Sandbox),
    Kubernetes(&'static ControlPlane),
}

/// An administrator's access to the cluster, for everything that the library does not do.
#[derive(Clone)]
pub(crate) struct Cluster {
    server: Server,
    client: Client,
    pub(crate) env: Arc<dyn Env>,
    /// The prefix of the names of the case's objects.
    prefix: String,
}

impl Cluster {
    /// `path` is the path of the case's module.
    pub(super) fn new(path: &str, server: Server, client: Client, env: Arc<dyn Env>) -> Self {
        let (_, path) = path.split_once("::").expect("a module of this binary");
        Self {
            server,
            client,
            env,
            prefix: path.replace("::", ".").replace('_', "-"),
        }
    }

    /// A name that no other case uses.
    pub(crate) fn name(&self, short: &str) -> String {
        format!("{}.{short}", self.prefix)
    }

    /// Creates a node and returns its name.
    pub(crate) async fn node(&self, short: &str) -> String {
        let node = self.name(short);
        self.create_node(&node).await;
        node
    }

    /// Creates a node and returns its uid.
    pub(crate) async fn create_node(&self, node: &str) -> String {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
        text(&self.create(NODES, &object).await, "/metadata/uid")
    }

    /// The current time by the server's clock, which is also the clock of the clients' machine.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.env.wall().to_chrono().expect("a time of this century")
    }

    /// The time `seconds` ago, in the format of a Lease. A negative number means the future.
    pub(crate) fn ago(&self, seconds: i64) -> String {
        micros(self.now() - chrono::TimeDelta::seconds(seconds))
    }

    /// The handle of a holder.
    pub(crate) fn holder(&self, identity: &str) -> Maintenance {
        self.builder(identity).build().unwrap()
    }

    pub(crate) fn builder(&self, identity: &str) -> Builder {
        Maintenance::builder(self.client.clone(), identity).env(self.env.clone())
    }

    /// The handle of a holder whose requests go through `wire`.
    pub(crate) fn holder_on(&self, wire: &Wire, identity: &str) -> Maintenance {
        self.builder_on(wire, identity).build().unwrap()
    }

    pub(crate) fn builder_on(&self, wire: &Wire, identity: &str) -> Builder {
        Maintenance::builder(wire.client(&self.client, &self.env), identity).env(self.env.clone())
    }

    /// The handle of a holder whose clock always shows `time`, whatever the server's clock shows.
    pub(crate) fn holder_at(&self, time: DateTime<Utc>, identity: &str) -> Maintenance {
        self.builder_at(time, identity).build().unwrap()
    }

    pub(crate) fn builder_at(&self, time: DateTime<Utc>, identity: &str) -> Builder {
        let clocks: Arc<dyn Env> = Arc::new(StoppedClocks(time));
        let client = Wire::clear().without_dates().client(&self.client, &clocks);
        Maintenance::builder(client, identity).env(clocks)
    }

    /// Another connection to the server.
    pub(crate) async fn reconnected(&self) -> Client {
        match &self.server {
            Server::Sandbox(sandbox) => sandbox.client(),
            Server::Kubernetes(plane) => kubernetes_client(plane.admin_kubeconfig()).await,
        }
    }

    /// The handle of a user of the real server who has only these rights.
    pub(crate) async fn user(&self, short: &str, rights: &[Rule]) -> Maintenance {
        self.user_builder(short, rights).await.build().unwrap()
    }

    pub(crate) async fn user_builder(&self, short: &str, rights: &[Rule]) -> Builder {
        let Server::Kubernetes(plane) = &self.server else {
            panic!("the sandbox knows no users");
        };
        let user = self.name(short);
        let kubeconfig = plane.user(&user, &[]).unwrap();
        plane.grant(&user, rights).unwrap();
        let client = kubernetes_client(&kubeconfig).await;
        Maintenance::builder(client, short)
    }

    /// The node's Lease, or null if it does not exist.
    pub(crate) async fn lease(&self, node: &str) -> Value {
        let (code, lease) = self.request("GET", &format!("{LEASES}/{node}"), None).await;
        match code {
            StatusCode::NOT_FOUND => Value::Null,
            _ => expect_success(code, lease),
        }
    }

    /// Writes a Lease by hand, and creates its namespace if necessary.
    pub(crate) async fn write_lease(&self, node: &str, spec: Value) -> Value {
        self.write_lease_with(json!({"name": node}), spec).await
    }

    pub(crate) async fn write_lease_with(&self, metadata: Value, spec: Value) -> Value {
        self.make_namespace().await;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        });
        self.create(LEASES, &lease).await
    }

    /// Writes a Lease that belongs to coordinated leader election. The sandbox does not have this
    /// feature, so the object is stored directly.
    pub(crate) async fn write_elected_lease(&self, node: &str, spec: Value) {
        match &self.server {
            Server::Sandbox(sandbox) => {
                self.make_namespace().await;
                sandbox.put(json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": node, "namespace": maintenance_lease::NAMESPACE},
                    "spec": spec,
                }));
            }
            Server::Kubernetes(_) => {
                self.write_lease(node, spec).await;
            }
        }
        assert!(self.lease(node).await["spec"]["strategy"].is_string());
    }

    /// Patches the Lease without a resource version, as kubectl does.
    pub(crate) async fn patch_lease(&self, node: &str, patch: Value) -> Value {
        self.patch(&format!("{LEASES}/{node}"), patch).await
    }

    /// Writes an annotation that has no meaning for us, which changes the resource version.
    pub(crate) async fn touch_lease(&self, node: &str) {
        let lease = self.lease(node).await;
        let touched = lease["metadata"]["resourceVersion"].clone();
        let annotations = json!({"example.com/touched-at": touched});
        self.patch_lease(node, json!({"metadata": {"annotations": annotations}}))
            .await;
    }

    pub(crate) async fn delete_lease(&self, node: &str) {
        self.delete(&format!("{LEASES}/{node}")).await;
    }

    /// The object at `path`.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let (code, answer) = self.request("GET", path, None).await;
        expect_success(code, answer)
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        let (code, answer) = self.request("POST", path, Some(object)).await;
        expect_success(code, answer)
    }

    pub(crate) async fn patch(&self, path: &str, patch: Value) -> Value {
        let (code, answer) = self.request("PATCH", path, Some(&patch)).await;
        expect_success(code, answer)
    }

    pub(crate) async fn delete(&self, path: &str) -> Value {
        let (code, answer) = self.request("DELETE", path, None).await;
        expect_success(code, answer)
    }

    pub(crate) async fn make_namespace(&self) {
        self.make_namespace_named(maintenance_lease::NAMESPACE)
            .await;
    }

    /// Creates a namespace if it does not exist.
    pub(crate) async fn make_namespace_named(&self, name: &str) {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
        });
        let (code, answer) = self
            .request("POST", "/api/v1/namespaces", Some(&namespace))
            .await;
        if code != StatusCode::CONFLICT {
            expect_success(code, answer);
        }
    }

    /// Removes the namespace of the Leases and everything in it, as its controller would.
    pub(crate) async fn remove_namespace(&self) {
        let (code, _) = self.request("DELETE", NAMESPACE_PATH, None).await;
        if code == StatusCode::NOT_FOUND {
            return;
        }
        self.delete(LEASES).await;
        let mut namespace = self.request("GET", NAMESPACE_PATH, None).await.1;
        namespace["spec"]["finalizers"] = json!([]);
        let path = format!("{NAMESPACE_PATH}/finalize");
        let (code, answer) = self.request("PUT", &path, Some(&namespace)).await;
        expect_success(code, answer);
        assert_eq!(
            self.request("GET", NAMESPACE_PATH, None).await.0,
            StatusCode::NOT_FOUND
        );
    }

    /// Waits until the node's Lease is deleted.
    pub(crate) async fn lease_gone(&self, node: &str) {
        let lease = self.lease(node).await;
        if lease.is_null() {
            return;
        }
        let version = text(&lease, "/metadata/resourceVersion");
        let path = format!(
            "{LEASES}?watch=true&fieldSelector=metadata.name%3D{node}&resourceVersion={version}"
        );
        let request = Request::get(path).body(Vec::new()).unwrap();
        let events = self.client.request_events::<Value>(request).await.unwrap();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await.unwrap() {
            if matches!(event, WatchEvent::Deleted(_)) {
                return;
            }
        }
        panic!("the Lease of {node} is still there");
    }

    pub(super) async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type)
            .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
            .unwrap()
            .map(Into::into);
        let answer = self.client.send(request).await.unwrap();
        let code = answer.status();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&body).unwrap())
    }
}

fn expect_success(code: StatusCode, answer: Value) -> Value {
    assert!(code.is_success(), "{code}: {answer}");
    answer
}

fn text(object: &Value, pointer: &str) -> String {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("no {pointer} in {object}"))
        .to_owned()
}
