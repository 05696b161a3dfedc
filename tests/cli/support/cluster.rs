//! The cluster of a test: the same interface for an in-memory server and a real one.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use control_plane::ControlPlane;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use maintenance_lease::{Maintenance, Repository};
use sandbox::{Sandbox, Serving};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::run::Maint;

/// The path of the maintenance Leases.
pub(crate) const LEASES: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";

/// Set by `cargo xtask test --all-on-real`.
const ALL_ON_REAL: &str = "TESTS_ALL_ON_REAL";

/// Serves sandboxes and sends the tests' own requests.
pub(super) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// A cluster in which the names of a test's objects begin with that test's prefix.
pub(crate) struct Cluster {
    pub(super) client: Client,
    pub(super) kubeconfig: PathBuf,
    prefix: String,
    pub(crate) real: Option<&'static ControlPlane>,
    _serving: Option<Serving>,
    directory: TempDir,
}

/// Runs a test on an in-memory API server and on a real one. Names that the test creates begin with `prefix`, which no
/// other test of this binary uses. Output is shown without it.
pub(crate) fn on_both(prefix: &str, test: impl Fn(&Cluster)) {
    insta::allow_duplicates! {
        test(&Cluster::in_memory(prefix));
        on_real(prefix, test);
    }
}

/// Runs a test on an in-memory API server, and also on a real one if [`ALL_ON_REAL`] is set. Use it for behavior that
/// is the same on both servers: each command has some tests that run [on both](on_both).
pub(crate) fn on_one(prefix: &str, test: impl Fn(&Cluster)) {
    match std::env::var_os(ALL_ON_REAL) {
        Some(_) => on_both(prefix, test),
        // In both cases, a test may call this function in a loop.
        None => insta::allow_duplicates! { in_memory(prefix, test) },
    }
}

/// Runs a test on its own in-memory API server, if it would disturb other tests on a shared one.
pub(crate) fn in_memory(prefix: &str, test: impl Fn(&Cluster)) {
    test(&Cluster::in_memory(prefix));
}

/// Runs a test on a real API server, because the in-memory one lacks a feature that the test needs.
pub(crate) fn on_real(prefix: &str, test: impl Fn(&Cluster)) {
    if control_plane::is_left_out() {
        return;
    }
    let cluster = Cluster::real(prefix);
    let _logs = cluster
        .real
        .map(|plane| plane.keep_logs_on_panic(concat!(env!("CARGO_CRATE_NAME"), "-test")));
    test(&cluster);
}

impl Cluster {
    fn in_memory(prefix: &str) -> Self {
        let directory = directory();
        let sandbox = Sandbox::new();
        let serving = RUNTIME
            .block_on(sandbox.serve("127.0.0.1:0"))
            .expect("a free port");
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::write(&kubeconfig, sandbox.kubeconfig(&serving.url)).expect("a kubeconfig");
        let cluster = Self::new(prefix, kubeconfig, directory, None, Some(serving));
        cluster.namespace();
        cluster
    }

    /// A cluster at an address that nothing listens on, for commands that must fail before they send a request.
    pub(crate) fn nowhere() -> Self {
        let directory = directory();
        let kubeconfig = directory.path().join("kubeconfig");
        let text = Sandbox::new().kubeconfig("http://127.0.0.1:1");
        std::fs::write(&kubeconfig, text).expect("a kubeconfig");
        Self::new("nowhere", kubeconfig, directory, None, None)
    }

    fn real(prefix: &str) -> Self {
        Self::of_plane(prefix, control_plane::shared())
    }

    /// A cluster on this control plane.
    pub(crate) fn of_plane(prefix: &str, plane: &'static ControlPlane) -> Self {
        let kubeconfig = plane.admin_kubeconfig().to_owned();
        let cluster = Self::new(prefix, kubeconfig, directory(), Some(plane), None);
        cluster.namespace();
        cluster
    }

    fn new(
        prefix: &str,
        kubeconfig: PathBuf,
        directory: TempDir,
        real: Option<&'static ControlPlane>,
        serving: Option<Serving>,
    ) -> Self {
        let client = RUNTIME.block_on(async {
            let file = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
            let mut config =
                kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .expect("a config");
            config.default_retry = false;
            Client::try_from(config).expect("a client")
        });
        Self {
            client,
            kubeconfig,
            prefix: format!("{prefix}-"),
            real,
            _serving: serving,
            directory,
        }
    }

    /// The control plane of the real server.
    ///
    /// # Panics
    /// On the in-memory server, which has no control plane.
    pub(crate) fn plane(&self) -> &'static ControlPlane {
        self.real.expect("it is the real server")
    }

    /// A temporary directory, deleted at the end of the test.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A name with this test's prefix.
    pub(crate) fn name(&self, short: &str) -> String {
        format!("{}{short}", self.prefix)
    }

    /// A run of the plugin as alice. Its output shows this test's objects by their short names.
    ///
    /// # Panics
    /// If the run would repair the nodes of other tests on a shared server.
    #[track_caller]
    pub(crate) fn maint<S: AsRef<str>>(&self, arguments: impl IntoIterator<Item = S>) -> Maint {
        let arguments: Vec<S> = arguments.into_iter().collect();
        let repairs = arguments.iter().any(|it| it.as_ref() == "--fix");
        assert!(
            !repairs || self.real.is_none(),
            "`doctor --fix` repairs the nodes of other tests, too: run it on the test's own server"
        );
        Maint::new(&self.kubeconfig, self.directory.path(), &self.prefix).args(arguments)
    }

    /// Locks of alice, acquired through the library as an application does it.
    pub(crate) fn locks(&self, repository: Repository) -> Maintenance {
        let builder = Maintenance::builder(self.client.clone(), "alice@bastion");
        let locks = builder.repository(repository).build();
        locks.expect("an identity")
    }

    /// Runs a future of the library to completion.
    pub(crate) fn wait_for<T>(&self, future: impl Future<Output = T>) -> T {
        RUNTIME.block_on(future)
    }

    /// Creates a Ready node and returns its name.
    pub(crate) fn node(&self, short: &str) -> String {
        self.node_with(short, &json!({}), &json!({}))
    }

    /// Creates a Ready node with these labels and this spec, and returns its name.
    pub(crate) fn node_with(&self, short: &str, labels: &Value, spec: &Value) -> String {
        let name = self.name(short);
        let now = now();
        self.create(
            "/api/v1/nodes",
            &json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
                "status": {"conditions": [{
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }]},
            }),
        );
        name
    }

    /// Creates a Lease for `node` whose lock was released.
    pub(crate) fn released(&self, node: &str) {
        self.lease(
            node,
            &json!({"holderIdentity": "", "leaseDurationSeconds": 1}),
        );
    }

    /// Creates a Lease for `node` with `spec`.
    pub(crate) fn lease(&self, node: &str, spec: &Value) {
        self.lease_with(node, &json!({}), spec);
    }

    /// Creates a Lease for `node` with annotations and `spec`.
    pub(crate) fn lease_with(&self, node: &str, annotations: &Value, spec: &Value) {
        self.create(
            LEASES,
            &json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": node, "annotations": annotations},
                "spec": spec,
            }),
        );
    }

    /// Creates the namespace of the Leases if it is missing. Every test's cluster starts with it.
    fn namespace(&self) {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "kube-node-maintenance"},
        });
        match self.try_send("POST", "/api/v1/namespaces", Some(&namespace)) {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("the namespace: {error}"),
        }
    }

    /// The Lease of `node`.
    #[track_caller]
    pub(crate) fn lease_of(&self, node: &str) -> Value {
        self.get(&format!("{LEASES}/{node}"))
    }

    #[track_caller]
    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        self.send("POST", path, Some(object))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.send("GET", path, None)
    }

    /// The object at this path, if it exists.
    #[track_caller]
    pub(crate) fn find(&self, path: &str) -> Option<Value> {
        match self.try_send("GET", path, None) {
            Ok(object) => Some(object),
            // The 404 for a path that the server does not know has no such details.
            Err(kube::Error::Api(status))
                if status.is_not_found() && { status.details.as_ref() }
                    .is_some_and(|it| path.ends_with(&it.name)) =>
            {
                None
            }
            Err(error) => panic!("GET {path}: {error}"),
        }
    }

    /// Applies a JSON merge patch.
    #[track_caller]
    pub(crate) fn patch(&self, path: &str, patch: &Value) -> Value {
        self.send("PATCH", path, Some(patch))
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Value {
        self.send("DELETE", path, None)
    }

    #[track_caller]
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        match self.try_send(method, path, body) {
            Ok(answer) => answer,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    /// Sends a request as an administrator.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(
                body.map(|body| body.to_string().into_bytes())
                    .unwrap_or_default(),
            )
            .expect("a request");
        RUNTIME.block_on(self.client.request(request))
    }
}

/// The current time minus `seconds`, in the format of a Lease.
pub(crate) fn ago(seconds: i64) -> String {
    let time = chrono::Utc::now() - chrono::TimeDelta::seconds(seconds);
    time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}
