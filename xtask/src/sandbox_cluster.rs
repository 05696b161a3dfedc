//! A temporary cluster: an in-memory API server with nodes, and the environment to reach it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result};
use control_plane::{Binary, target_dir};
use sandbox::{Node, Sandbox, Serving};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::cargo::succeeds;
use crate::control_plane::ensure_built;

/// How often kubelets renew their heartbeats.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// A running cluster. When it is dropped, it stops and its files are removed.
pub(crate) struct SandboxCluster {
    _serving: Serving,
    _kubelets: JoinSet<()>,
    directory: tempfile::TempDir,
}

impl SandboxCluster {
    /// Starts a cluster with these nodes, and renews their heartbeats as long as it runs.
    pub(crate) async fn start(nodes: impl IntoIterator<Item = Node>) -> Result<Self> {
        Self::of(Sandbox::new(), nodes).await
    }

    /// Starts a cluster on this server.
    pub(crate) async fn of(
        sandbox: Sandbox,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Result<Self> {
        let mut kubelets = JoinSet::new();
        sandbox.put(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-maintenance"},
        }));
        for node in nodes {
            let name = node.name().to_owned();
            sandbox.add_node(node);
            kubelets.spawn(kubelet(sandbox.clone(), name));
        }
        let serving = sandbox
            .serve("127.0.0.1:0")
            .await
            .context("failed to listen on a free port")?;
        let directory = tempfile::Builder::new()
            .prefix("kubectl-maint-")
            .tempdir()
            .context("failed to make a temporary directory")?;
        let cluster = Self {
            directory,
            _serving: serving,
            _kubelets: kubelets,
        };
        let kubeconfig = sandbox.kubeconfig(&cluster._serving.url);
        fs::write(cluster.kubeconfig(), kubeconfig).context("failed to write a kubeconfig")?;
        Ok(cluster)
    }

    /// The directory of its files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The kubeconfig of the cluster's administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory().join("kubeconfig")
    }
}

/// Renews the heartbeat of a node at regular intervals.
async fn kubelet(sandbox: Sandbox, node: String) {
    let mut heartbeat = interval(HEARTBEAT);
    loop {
        heartbeat.tick().await;
        sandbox.beat(&node);
    }
}

/// The directories to put first in PATH: those of the plugin and of kubectl.
pub(crate) fn tools(kubectl: &Path) -> Vec<PathBuf> {
    let mut directories = vec![target_dir().join("debug")];
    directories.extend(kubectl.parent().map(Path::to_owned));
    directories
}

/// The value of PATH with `directories` first.
pub(crate) fn path_with(directories: &[PathBuf]) -> Result<OsString> {
    let rest = env::var_os("PATH").unwrap_or_default();
    env::join_paths(directories.iter().cloned().chain(env::split_paths(&rest)))
        .context("a directory can't be in PATH")
}

/// A line for another shell that sets KUBECONFIG, and puts `directories` first in PATH.
pub(crate) fn export_line(kubeconfig: &Path, directories: &[PathBuf]) -> String {
    let directories: Vec<String> = directories.iter().map(|path| quoted(path)).collect();
    format!(
        "export KUBECONFIG={} PATH={}:\"$PATH\"",
        quoted(kubeconfig),
        directories.join(":")
    )
}

/// Quotes a path for a POSIX shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The kubectl of this machine if it works. Otherwise our own, which is built if it is missing.
pub(crate) fn kubectl() -> Result<PathBuf> {
    let installed = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join("kubectl"))
        .find(|kubectl| runs(kubectl));
    match installed {
        Some(kubectl) => Ok(kubectl),
        None => {
            ensure_built(&[Binary::Kubectl])?;
            Binary::Kubectl.locate()
        }
    }
}

fn runs(kubectl: &Path) -> bool {
    kubectl.is_file() && succeeds(Command::new(kubectl).args(["version", "--client"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word_to_a_shell() {
        assert_eq!(
            quoted(Path::new("/home/o'neil/a b")),
            r"'/home/o'\''neil/a b'"
        );
    }

    /// The resource version of the heartbeat of `node`, which shows renewals.
    fn renewed(sandbox: &Sandbox, node: &str) -> Option<String> {
        let lease = sandbox.get("coordination.k8s.io/v1", "Lease", "kube-node-lease", node)?;
        Some(lease["metadata"]["resourceVersion"].to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_go_on_for_as_long_as_the_node_is_there() {
        let sandbox = Sandbox::new();
        let nodes = [Node::named("worker-1"), Node::named("worker-2")];
        let cluster = SandboxCluster::of(sandbox.clone(), nodes).await.unwrap();
        sandbox.remove("v1", "Node", "", "worker-2");
        let mut last = renewed(&sandbox, "worker-1");
        assert!(last.is_some());
        for _ in 0..10 {
            tokio::time::sleep(HEARTBEAT).await;
            let next = renewed(&sandbox, "worker-1");
            assert_ne!(next, last);
            last = next;
        }
        assert_eq!(renewed(&sandbox, "worker-2"), None);
        drop(cluster);
        tokio::time::sleep(2 * HEARTBEAT).await;
        assert_eq!(renewed(&sandbox, "worker-1"), last);
    }
}
