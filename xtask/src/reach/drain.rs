//! `kubectl drain`, which ignores opt-outs.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use control_plane::{Binary, ControlPlane, Kubelets};
use serde_json::Value;

use super::program::{is_evicted, maint, pod};
use super::subject::{NODES, Subject, Tool};
use crate::real_cluster::{create_objects, get};

const WITHOUT: Subject = Subject {
    name: "kubectl-drain",
    tool: "`kubectl drain`",
    binary: Binary::Kubectl,
    module: "k8s.io/kubernetes",
    does: "evicts the pods of a node",
    is_stopped: false,
    observed: Duration::ZERO,
    plane: |builder| builder,
    start: |plane| Ok(Box::new(Drain::start(plane, false)?)),
};

pub(super) const WITHOUT_POLICIES: Subject = WITHOUT;

/// The policies refuse the cordon. kubectl evicts the pods nevertheless.
pub(super) const REFUSED: Subject = Subject {
    name: "kubectl-drain-refused",
    does: "the same, with the policies in deny mode: they refuse the cordon",
    start: |plane| Ok(Box::new(Drain::start(plane, true)?)),
    ..WITHOUT
};

struct Drain<'p> {
    plane: &'p ControlPlane,
    /// Whether the policies are in deny mode.
    denies: bool,
    _kubelets: Kubelets,
    log: String,
}

impl<'p> Drain<'p> {
    fn start(plane: &'p ControlPlane, denies: bool) -> Result<Self> {
        if denies {
            maint(plane, &["install"])?;
            maint(plane, &["enforce", "deny"])?;
        }
        let kubelets = plane.kubelets(&NODES, &[])?;
        for node in NODES {
            create_objects(plane, &pod(node, node))?;
        }
        Ok(Self {
            plane,
            denies,
            _kubelets: kubelets,
            log: String::new(),
        })
    }

    fn is_cordoned(&self, node: &str) -> Result<bool> {
        let node = get(self.plane, &["node", node])?;
        Ok(node["spec"]["unschedulable"] == Value::Bool(true))
    }
}

impl Tool for Drain<'_> {
    /// Drains as another user than the holder. kubectl exits with 0 even if it could not cordon the
    /// node.
    fn begin(&mut self) -> Result<()> {
        let other = self.plane.user("other", &["system:masters"])?;
        for node in NODES {
            let mut command = self.plane.kubectl_command()?;
            command.args(["drain", node, "--force"]);
            let output = command
                .env("KUBECONFIG", &other)
                .stdin(Stdio::null())
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            self.log.push_str(&said);
            ensure!(output.status.success(), "drain {node} fails: {said}");
            let refused = node == "held" && self.denies;
            ensure!(said.contains("maint-held-cordon") == refused, "{said}");
            ensure!(self.is_cordoned(node)? != refused, "{node}: {said}");
        }
        Ok(())
    }

    fn is_disrupted(&self, node: &str) -> Result<bool> {
        is_evicted(self.plane, node)
    }

    fn log(&self) -> String {
        self.log.clone()
    }
}
