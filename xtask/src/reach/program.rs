//! Runs the other tools and the plugin.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use control_plane::{Binary, ControlPlane, target_dir};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cargo::run;
use crate::real_cluster::wait;

/// The time limit of each wait.
pub(super) const LIMIT: Duration = Duration::from_secs(240);

/// A running program. It is killed when this is dropped.
pub(super) struct Program {
    process: Child,
    directory: TempDir,
}

impl Program {
    /// Starts it as an administrator. The certificates of its webhooks are in the directory where
    /// it expects them.
    pub(super) fn start(
        plane: &ControlPlane,
        binary: Binary,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let certificates = directory.path().join("k8s-webhook-server/serving-certs");
        fs::create_dir_all(&certificates)?;
        let identity = plane.authority().server(&["localhost"])?;
        fs::write(certificates.join("tls.crt"), &identity.cert_pem)?;
        fs::write(certificates.join("tls.key"), &identity.key_pem)?;
        let log = File::create(directory.path().join("log"))?;
        let process = Command::new(binary.locate()?)
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", plane.admin_kubeconfig())
            .env("HOME", directory.path())
            .env("TMPDIR", directory.path())
            .envs(variables.iter().copied())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { process, directory })
    }

    pub(super) fn log(&self) -> String {
        let log = fs::read(self.directory.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the plugin as an administrator.
pub(super) fn maint(plane: &ControlPlane, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(target_dir().join("debug/kubectl-maint"));
    command
        .args(arguments)
        .env_clear()
        .env("KUBECONFIG", plane.admin_kubeconfig())
        .env("HOME", plane.directory());
    run(&mut command)
}

/// Waits until the API server serves these kinds of objects.
pub(super) fn await_served(plane: &ControlPlane, plurals: &[&str]) -> Result<()> {
    for plural in plurals {
        wait(&format!("{plural} are served"), LIMIT, || {
            Ok(plane.kubectl(&["get", plural]).is_ok())
        })?;
    }
    Ok(())
}

/// A pod without an owner that runs on this node.
pub(super) fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example.com/main"}],
        },
    })
}

/// Whether this pod has ended or is being deleted.
pub(super) fn is_evicted(plane: &ControlPlane, pod: &str) -> Result<bool> {
    let found = plane.kubectl(&[
        "get",
        "pod",
        pod,
        "--ignore-not-found",
        "-o",
        "jsonpath={.metadata.name} {.metadata.deletionTimestamp}",
    ])?;
    Ok(found.trim() != pod)
}
