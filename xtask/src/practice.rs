//! A practice cluster: an in-memory API server with nodes, and the environment to reach it with.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use control_plane::{Binary, target_dir};
use sandbox::{Sandbox, Serving};

use crate::control_plane::ensure_built;

/// It ends, with its files, when it is dropped.
pub(crate) struct Practice {
    _serving: Serving,
    directory: tempfile::TempDir,
}

impl Practice {
    /// Starts one with these nodes.
    pub(crate) async fn start(nodes: impl IntoIterator<Item = sandbox::Node>) -> Result<Self> {
        let sandbox = Sandbox::new();
        for node in nodes {
            sandbox.add_node(node);
        }
        let serving = sandbox
            .serve("127.0.0.1:0")
            .await
            .context("failed to listen on a free port")?;
        let directory = tempfile::Builder::new()
            .prefix("kubectl-maint-")
            .tempdir()
            .context("failed to make a temporary directory")?;
        let practice = Self {
            directory,
            _serving: serving,
        };
        let kubeconfig = sandbox.kubeconfig(&practice._serving.url);
        fs::write(practice.kubeconfig(), kubeconfig).context("failed to write a kubeconfig")?;
        Ok(practice)
    }

    /// The kubeconfig of its administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }
}

/// Directories for the front of PATH: the plugin's, and kubectl's.
pub(crate) fn tools(kubectl: &Path) -> Vec<PathBuf> {
    let mut directories = vec![target_dir().join("debug")];
    directories.extend(kubectl.parent().map(Path::to_owned));
    directories
}

/// PATH with `directories` in front.
pub(crate) fn path_with(directories: &[PathBuf]) -> Result<OsString> {
    let rest = env::var_os("PATH").unwrap_or_default();
    env::join_paths(directories.iter().cloned().chain(env::split_paths(&rest)))
        .context("a directory can't be in PATH")
}

/// The kubectl of this machine, where there is one that runs, else our own, which is built where it
/// is missing.
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
    kubectl.is_file()
        && Command::new(kubectl)
            .args(["version", "--client"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}
