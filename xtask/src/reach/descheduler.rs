//! The descheduler, with a policy that excludes nodes on hold.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use control_plane::{Binary, ControlPlane, Kubelets};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::program::{LIMIT, Program, is_evicted};
use super::subject::{NODES, Subject, Tool};
use crate::real_cluster::{create_objects, get, wait};

pub(super) const EVICTION: Subject = Subject {
    name: "descheduler",
    tool: "descheduler",
    binary: Binary::Descheduler,
    module: "sigs.k8s.io/descheduler",
    does: "evicts pods; its policy has the `nodeSelector` above",
    is_stopped: true,
    observed: Duration::from_secs(30),
    plane: |builder| builder,
    start: |plane| Ok(Box::new(Descheduler::start(plane)?)),
};

struct Descheduler<'p> {
    plane: &'p ControlPlane,
    _kubelets: Kubelets,
    directory: TempDir,
    /// The pods on the node on hold and on the other one.
    pods: [String; 2],
    program: Option<Program>,
}

impl<'p> Descheduler<'p> {
    /// Starts with three nodes, because the descheduler does nothing if it may use only one.
    fn start(plane: &'p ControlPlane) -> Result<Self> {
        let kubelets = plane.kubelets(&["held", "free", "well"], &[])?;
        let mut pods = Vec::new();
        for node in NODES {
            create_objects(plane, &replica_set(node))?;
            let mut pod = String::new();
            wait(&format!("a pod for {node}"), LIMIT, || {
                let found = get(plane, &["pods", "-l", &format!("app={node}")])?;
                found["items"][0]["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut pod);
                Ok(!pod.is_empty())
            })?;
            plane.bind_pod("default", &pod, node)?;
            pods.push(pod);
        }
        let pods = <[String; 2]>::try_from(pods).ok().context("two pods")?;
        Ok(Self {
            plane,
            _kubelets: kubelets,
            directory: tempfile::tempdir()?,
            pods,
            program: None,
        })
    }
}

impl Tool for Descheduler<'_> {
    fn begin(&mut self) -> Result<()> {
        let path = self.directory.path().join("policy.json");
        fs::write(&path, policy().to_string())?;
        let path = path.display().to_string();
        let kubeconfig = self.plane.admin_kubeconfig().display().to_string();
        let arguments = [
            "--policy-config-file",
            &path,
            "--kubeconfig",
            &kubeconfig,
            "--descheduling-interval=2s",
            "--secure-port=0",
            "--v=3",
        ];
        self.program = Some(Program::start(
            self.plane,
            Binary::Descheduler,
            &arguments,
            &[],
        )?);
        Ok(())
    }

    fn is_disrupted(&self, node: &str) -> Result<bool> {
        let [held, free] = &self.pods;
        is_evicted(self.plane, if node == "held" { held } else { free })
    }

    fn log(&self) -> String {
        self.program.as_ref().map(Program::log).unwrap_or_default()
    }
}

/// A policy that evicts every pod older than one second, but not from nodes on hold.
fn policy() -> Value {
    json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
        "nodeSelector": "!kubectl-maint.dev/held",
        "profiles": [{
            "name": "all",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {}},
                {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 1}},
            ],
            "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
        }],
    })
}

/// A ReplicaSet with one pod. The pod is replaced after an eviction.
fn replica_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": "example.com/main"}],
                },
            },
        },
    })
}
