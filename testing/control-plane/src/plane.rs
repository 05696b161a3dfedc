//! The control plane as a whole.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fmt, fs};

use anyhow::{Context, Result, bail};

use crate::api::{Api, Worker};
use crate::assets::{Binary, target_dir};
use crate::authority::{Authority, Identity};
use crate::component::Component;
use crate::flags::Ground;
use crate::janitor::Janitor;
use crate::kubeconfig::Kubeconfig;

/// The options of a control plane; see [`ControlPlane::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    controller_manager: bool,
    controller_manager_flags: Vec<String>,
    api_server_flags: Vec<String>,
    fsync: bool,
}

impl Builder {
    /// Whether to start kube-controller-manager, which is the default.
    #[must_use]
    pub fn controller_manager(mut self, wanted: bool) -> Self {
        self.controller_manager = wanted;
        self
    }

    /// Adds a flag for kube-controller-manager. It overrides the default flags.
    ///
    /// By default, no node becomes unreachable for a day, because there are no kubelets. For tests of unreachable
    /// nodes, use `--node-monitor-period=1s` and `--node-monitor-grace-period=2s`.
    #[must_use]
    pub fn controller_manager_flag(mut self, flag: &str) -> Self {
        self.controller_manager_flags.push(flag.to_owned());
        self
    }

    /// Runs only these controllers, by their names in `--controllers`.
    #[must_use]
    pub fn controllers(self, names: &[&str]) -> Self {
        self.controller_manager_flag(&format!("--controllers={}", names.join(",")))
    }

    /// Handles unreachable nodes and their pods in seconds instead of minutes. A node is unreachable after 8 s
    /// ([`Kubelets`](crate::Kubelets) send two heartbeats per second). Its pods are evicted 1 s later. If it is out of
    /// service, they are removed within 20 s, the period of pod garbage collection. Deployments, ReplicaSets,
    /// StatefulSets, DaemonSets and Jobs replace their pods, and volumes are attached and detached. No other
    /// controllers run.
    #[must_use]
    pub fn for_unreachable_nodes(self) -> Self {
        self.controllers(&[
            "node-lifecycle-controller",
            "taint-eviction-controller",
            "pod-garbage-collector-controller",
            "garbage-collector-controller",
            "statefulset-controller",
            "replicaset-controller",
            "deployment-controller",
            "daemonset-controller",
            "job-controller",
            "persistentvolume-binder-controller",
            "persistentvolume-attach-detach-controller",
            "persistentvolumeclaim-protection-controller",
        ])
        .controller_manager_flag("--node-monitor-period=1s")
        .controller_manager_flag("--node-monitor-grace-period=8s")
        .controller_manager_flag("--node-eviction-rate=100")
        .controller_manager_flag("--attach-detach-reconcile-sync-period=2s")
        .api_server_flag("--default-not-ready-toleration-seconds=1")
        .api_server_flag("--default-unreachable-toleration-seconds=1")
    }

    /// Adds a flag for kube-apiserver.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }

    /// Whether etcd waits until the data is on the disk, which benchmarks need. By default, it does not wait. With
    /// this, the data is kept in the workspace's `target`, because the usual directory for temporary files may be in
    /// memory.
    #[must_use]
    pub fn fsync(mut self, wanted: bool) -> Self {
        self.fsync = wanted;
        self
    }

    /// Starts the control plane, and waits until every process is ready.
    ///
    /// # Errors
    /// If a binary is missing (`cargo xtask control-plane` builds them), or a process does not become ready. The
    /// message has the end of its log.
    pub fn start(&self) -> Result<ControlPlane> {
        let parent = if self.fsync {
            target_dir().join("control-plane-data")
        } else {
            std::env::temp_dir()
        };
        fs::create_dir_all(&parent)
            .with_context(|| format!("failed to make {}", parent.display()))?;
        let directory = tempfile::Builder::new()
            .prefix("control-plane-")
            .tempdir_in(parent)?;
        let janitor = Arc::new(Janitor::start(directory.path())?);
        let directory = directory.keep();

        let authority = Authority::new("kubectl-maint test authority")?;
        let admin = authority.client("admin", &["system:masters"])?;
        let worker = Worker::new()?;
        let ground = Ground {
            directory: &directory,
            janitor: &janitor,
            worker: &worker,
            authority: &authority,
            admin: &admin,
        };
        fs::create_dir(ground.logs())?;
        ground.write_certificates()?;

        let etcd = ground.start(Binary::Etcd, || ground.etcd(self.fsync))?;
        let api_server = ground.start(Binary::KubeApiserver, || {
            ground.api_server(etcd.url(), &self.api_server_flags)
        })?;
        let url = api_server.url().to_owned();
        let admin_kubeconfig = directory.join("admin.kubeconfig");
        let ca_pem = authority.pem();
        Kubeconfig {
            server: &url,
            ca_pem: &ca_pem,
            user: "admin",
            identity: &admin,
        }
        .write(&admin_kubeconfig)?;
        let controller_manager = self
            .controller_manager
            .then(|| self.start_controller_manager(&ground, &url))
            .transpose()?;
        let logs = ground.logs();
        let api = Api::secure(&worker, &url, &authority, &admin)?;

        Ok(ControlPlane {
            controller_manager,
            api_server,
            etcd,
            api,
            _worker: worker,
            authority,
            admin,
            admin_kubeconfig,
            directory,
            logs,
            janitor,
        })
    }

    fn start_controller_manager(&self, ground: &Ground<'_>, url: &str) -> Result<Component> {
        let user = "system:kube-controller-manager";
        // All controllers share this user, which therefore needs the rights of all of them.
        let identity = ground.authority.client(user, &["system:masters"])?;
        let path = ground.directory.join("controller-manager.kubeconfig");
        let ca_pem = ground.authority.pem();
        Kubeconfig {
            server: url,
            ca_pem: &ca_pem,
            user,
            identity: &identity,
        }
        .write(&path)?;
        ground.start(Binary::KubeControllerManager, || {
            ground.controller_manager(&path, &self.controller_manager_flags)
        })
    }
}

/// A running control plane. When it is dropped, its processes end and its files are removed.
pub struct ControlPlane {
    // Fields are dropped in this order: each component before those that it needs, and the janitor, which removes the
    // files, last.
    controller_manager: Option<Component>,
    api_server: Component,
    etcd: Component,
    api: Api,
    _worker: Worker,
    authority: Authority,
    admin: Identity,
    admin_kubeconfig: PathBuf,
    directory: PathBuf,
    logs: PathBuf,
    janitor: Arc<Janitor>,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("url", &self.url())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts a control plane for tests: with a controller manager, and an etcd that does not wait for its disk.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// Options for another kind of control plane.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            controller_manager: true,
            controller_manager_flags: Vec::new(),
            api_server_flags: Vec::new(),
            fsync: false,
        }
    }

    /// The API server's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        self.api_server.url()
    }

    /// The authority that signed the certificates of the server and of all users. It can also sign invalid ones for
    /// tests.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The file with the authority's certificate.
    #[must_use]
    pub fn ca_path(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// The kubeconfig of the administrator, who has all rights (`system:masters`) and is exempt from flow control.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// The administrator's certificate and key.
    #[must_use]
    pub fn admin(&self) -> &Identity {
        &self.admin
    }

    /// etcd. Its URL is the endpoint for etcd clients: plain HTTP, without authentication.
    #[must_use]
    pub fn etcd(&self) -> &Component {
        &self.etcd
    }

    /// The API server.
    #[must_use]
    pub fn api_server(&self) -> &Component {
        &self.api_server
    }

    /// The controller manager, if the [`Builder`] enabled it.
    #[must_use]
    pub fn controller_manager(&self) -> Option<&Component> {
        self.controller_manager.as_ref()
    }

    /// The directory with the logs of all processes. It is removed when the control plane ends; see
    /// [`keep_logs`](Self::keep_logs).
    #[must_use]
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// A directory that is removed when the control plane ends.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// kubectl as the administrator, in an otherwise empty environment.
    ///
    /// # Errors
    /// If there is no kubectl.
    pub fn kubectl_command(&self) -> Result<Command> {
        let mut command = Command::new(Binary::Kubectl.locate()?);
        command
            .env_clear()
            .env("HOME", &self.directory)
            .env("KUBECONFIG", &self.admin_kubeconfig);
        Ok(command)
    }

    /// Runs kubectl as the administrator, and returns its stdout.
    ///
    /// # Errors
    /// If it fails. The error has its stderr.
    pub fn kubectl(&self, args: &[&str]) -> Result<String> {
        let output = self.kubectl_command()?.args(args).output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {} failed: {}", args.join(" "), message.trim_end());
        }
        String::from_utf8(output.stdout).context("kubectl printed something that isn't text")
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn janitor(&self) -> &Janitor {
        &self.janitor
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_logs(std::thread::current().name().unwrap_or("unnamed"));
        }
    }
}
