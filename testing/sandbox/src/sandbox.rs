//! The handle of a sandbox for tests.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::object;
use crate::resource::Resource;
use crate::route::key;
use crate::rules::time;
use crate::seed::{self, Node};
use crate::server::Server;
use crate::service::SandboxService;
use crate::serving::Serving;

/// An in-memory API server. Clones share its objects.
#[derive(Clone)]
pub struct Sandbox {
    server: Arc<Server>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// An empty cluster with the system's clock and garbage collection.
    pub fn new() -> Self {
        Self::builder().build()
    }

    pub(crate) fn over(server: Server) -> Self {
        Self {
            server: Arc::new(server),
        }
    }

    /// A client in this process. Its default namespace is `default`.
    ///
    /// # Panics
    /// Outside a tokio runtime, because the client runs a task there.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The server as a service, for other layers or clients.
    pub fn service(&self) -> SandboxService {
        SandboxService::new(self.server.clone())
    }

    /// Serves plain HTTP (1.1, or 2 with prior knowledge) at `address`. For example, `127.0.0.1:0` chooses a free port.
    ///
    /// # Errors
    /// If the address can't be used.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<Serving> {
        Serving::start(TcpListener::bind(address).await?, self.service())
    }

    /// A kubeconfig for kubectl and other clients of a sandbox that is served at `url`.
    pub fn kubeconfig(&self, url: &str) -> String {
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: {url}
users:
- name: sandbox
  user: {{}}
contexts:
- name: sandbox
  context:
    cluster: sandbox
    user: sandbox
current-context: sandbox
"
        )
    }

    /// Stores an object without validation, and replaces one with the same name. Adds a uid and a creation time if they
    /// are missing. Returns the stored object.
    ///
    /// # Panics
    /// If the sandbox does not know the type, or the object has no name.
    pub fn put(&self, mut object: Value) -> Value {
        let resource = self.resource_of(&object);
        let name = object::name(&object).to_owned();
        assert!(!name.is_empty(), "an object without a name: {object}");
        let key = key(object::namespace(&object), &name);
        let now = time::seconds(self.server.now());
        self.server.change(|state| {
            let old = state.store.get(&resource, &key).cloned();
            let inherited = |field: &str| old.as_ref()?.get("metadata")?.get(field).cloned();
            let metadata = object::metadata_mut(&mut object);
            metadata.entry("uid").or_insert_with(|| {
                inherited("uid").unwrap_or_else(|| state.identities.uid().into())
            });
            metadata
                .entry("creationTimestamp")
                .or_insert_with(|| inherited("creationTimestamp").unwrap_or(now.into()));
            Value::clone(&state.store.put(&resource, &key, object))
        })
    }

    /// Reads an object. `namespace` is empty for cluster-scoped types.
    ///
    /// # Panics
    /// If the sandbox doesn't know the type.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.resource(api_version, kind);
        let found = self.server.find(&resource, &key(namespace, name));
        found.map(|object| Value::clone(&object))
    }

    /// Removes an object at once, regardless of its finalizers, and returns its last state.
    ///
    /// # Panics
    /// If the sandbox doesn't know the type.
    pub fn remove(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Value> {
        let resource = self.resource(api_version, kind);
        let key = key(namespace, name);
        self.server
            .change(|state| state.store.remove(&resource, &key))
            .map(|object| Value::clone(&object))
    }

    /// Adds a node, which is Ready by default, and the heartbeat of its kubelet. Returns the uid of the node.
    pub fn add_node(&self, node: impl Into<Node>) -> String {
        let node = node.into();
        let stored = self.put(node.to_object(self.server.now()));
        let uid = object::uid(&stored).to_owned();
        self.put(seed::heartbeat(node.name(), &uid, self.server.now()));
        uid
    }

    /// Renews the heartbeat of `node`, as its kubelet does every ten seconds. Does nothing if the Node does not exist.
    pub fn beat(&self, node: &str) {
        let nodes = self.resource("v1", "Node");
        let leases = self.resource("coordination.k8s.io/v1", "Lease");
        let now = self.server.now();
        let key_of_lease = key(seed::HEARTBEATS, node);
        self.server.change(|state| {
            let Some(owner) = state.store.get(&nodes, &key("", node)) else {
                return;
            };
            let mut heartbeat = seed::heartbeat(node, object::uid(owner), now);
            if let Some(last) = state.store.get(&leases, &key_of_lease) {
                heartbeat["metadata"] = last["metadata"].clone();
            }
            state.store.put(&leases, &key_of_lease, heartbeat);
        });
    }

    /// Deletes the history: older watches and pages get 410 Expired.
    pub fn compact(&self) {
        self.server.state().store.compact();
    }

    fn resource_of(&self, object: &Value) -> Arc<Resource> {
        self.resource(
            object::text(object, "/apiVersion"),
            object::text(object, "/kind"),
        )
    }

    fn resource(&self, api_version: &str, kind: &str) -> Arc<Resource> {
        self.server
            .catalog
            .by_kind(api_version, kind)
            .unwrap_or_else(|| panic!("the sandbox knows no {kind} of {api_version:?}"))
            .clone()
    }
}
