//! A cluster for a test, on the in-memory or the real API server.

use std::path::PathBuf;
use std::sync::LazyLock;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use sandbox::{Sandbox, Serving};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::candidate::Setup;
use super::eventually;
use super::journal::Journal;
use super::network_proxy::NetworkProxy;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// More bytes than a server sends without a change of the Lease.
const NEWS: usize = 10_000;

/// A cluster. Each test has its own Lease in namespace `default`.
pub(crate) struct Cluster {
    pub(crate) lease: String,
    pub(crate) journal: Journal,
    kubeconfig: PathBuf,
    client: Client,
    directory: TempDir,
    _serving: Option<Serving>,
}

impl Cluster {
    pub(crate) fn in_memory(test: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let sandbox = Sandbox::new();
        let serving = RUNTIME
            .block_on(sandbox.serve("127.0.0.1:0"))
            .expect("a free port");
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::write(&kubeconfig, sandbox.kubeconfig(&serving.url)).expect("a kubeconfig");
        Self::new(test, kubeconfig, directory, Some(serving))
    }

    pub(crate) fn real(test: &str) -> Self {
        let kubeconfig = control_plane::shared().admin_kubeconfig().to_owned();
        Self::new(test, kubeconfig, TempDir::new().expect("a directory"), None)
    }

    fn new(test: &str, kubeconfig: PathBuf, directory: TempDir, serving: Option<Serving>) -> Self {
        let client = RUNTIME.block_on(async {
            let file = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await;
            Client::try_from(config.expect("a config")).expect("a client")
        });
        Self {
            lease: test.replace('_', "-"),
            journal: Journal::new(directory.path().join("journal")),
            kubeconfig,
            client,
            directory,
            _serving: serving,
        }
    }

    /// A candidate whose daemon is called `name`.
    pub(crate) fn candidate(&self, name: &str) -> Setup {
        Setup::new(self, &self.kubeconfig, name)
    }

    /// A candidate that reaches the API server through a proxy.
    pub(crate) fn candidate_on(&self, wire: &NetworkProxy, name: &str) -> Setup {
        let text = self
            .kubeconfig_text()
            .replace(&self.server(), &wire.address());
        Setup::new(self, &self.write("wired", &text), name)
    }

    /// A proxy to the API server.
    pub(crate) fn wire(&self) -> NetworkProxy {
        NetworkProxy::to(&self.server())
    }

    /// A kubeconfig whose contexts use `namespace`.
    pub(crate) fn kubeconfig_in(&self, namespace: &str) -> PathBuf {
        let mut file = Kubeconfig::read_from(&self.kubeconfig).expect("a kubeconfig");
        for context in file
            .contexts
            .iter_mut()
            .filter_map(|named| named.context.as_mut())
        {
            context.namespace = Some(namespace.to_owned());
        }
        self.write(namespace, &serde_json::to_string(&file).expect("JSON"))
    }

    /// A kubeconfig whose credential plugin hangs together with a child process. Their pids are written to
    /// the journal.
    pub(crate) fn kubeconfig_with_slow_plugin(&self) -> PathBuf {
        let plugin = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "/bin/sh",
            "args": ["-c", "(trap '' TERM INT; sleep 90) & echo plugin $$ $! >>$JOURNAL; wait"],
            "interactiveMode": "Never",
        });
        let file = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "slow",
            "contexts": [{"name": "slow", "context": {"cluster": "slow", "user": "slow"}}],
            "clusters": [{"name": "slow", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "slow", "user": {"exec": plugin}}],
        });
        self.write("slow", &file.to_string())
    }

    fn kubeconfig_text(&self) -> String {
        std::fs::read_to_string(&self.kubeconfig).expect("a kubeconfig")
    }

    /// Writes a file to the test's directory.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Host and port of the API server.
    fn server(&self) -> String {
        let text = self.kubeconfig_text();
        let (_, rest) = text.split_once("127.0.0.1:").expect("on loopback");
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        format!("127.0.0.1:{port}")
    }

    /// The Lease's spec.
    pub(crate) fn spec(&self) -> Value {
        let request = http::Request::get(self.path());
        self.request(request, Vec::new())["spec"].clone()
    }

    /// Deletes the Lease as a user with that permission.
    pub(crate) fn delete_lease(&self) {
        self.request(http::Request::delete(self.path()), Vec::new());
    }

    /// Waits until the client behind `wire` watches the Lease, so that it sees every later write.
    pub(crate) fn is_watched_on(&self, wire: &NetworkProxy) {
        // The first change may already be in the list with which the watch begins. The second is not.
        for round in 0..2 {
            let came = wire.came();
            self.note(&round.to_string().repeat(NEWS));
            eventually("news of the Lease", || {
                (wire.came() >= came + NEWS).then_some(())
            });
        }
    }

    /// Writes an annotation to the Lease.
    fn note(&self, text: &str) {
        let patch = json!({"metadata": {"annotations": {"note": text}}});
        let request = http::Request::patch(self.path())
            .header("content-type", "application/merge-patch+json");
        self.request(request, patch.to_string().into_bytes());
    }

    fn path(&self) -> String {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
        format!("{leases}/{}", self.lease)
    }

    fn request(&self, request: http::request::Builder, body: Vec<u8>) -> Value {
        let request = request.body(body).expect("a request");
        let answer = RUNTIME.block_on(self.client.request(request));
        answer.expect("the server answers")
    }
}
