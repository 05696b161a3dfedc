//! Karpenter, with nodes that exist only in the API.

use std::time::Duration;

use anyhow::{Context, Result};
use control_plane::{Binary, ControlPlane};
use serde_json::{Value, json};

use super::program::{LIMIT, Program, await_served};
use super::subject::{Subject, Tool};
use crate::go::Module;
use crate::real_cluster::{create_objects, get, wait};

const MODULE: &str = "sigs.k8s.io/karpenter";

pub(super) const EMPTINESS: Subject = Subject {
    name: "karpenter",
    tool: "Karpenter",
    binary: Binary::Karpenter,
    module: MODULE,
    does: "deletes an empty node",
    is_stopped: true,
    // It checks every 10 s.
    observed: Duration::from_secs(60),
    plane: |builder| builder,
    start: |plane| Ok(Box::new(Karpenter::start(plane)?)),
};

struct Karpenter<'p> {
    plane: &'p ControlPlane,
    program: Program,
    nodes: [String; 2],
}

impl<'p> Karpenter<'p> {
    fn start(plane: &'p ControlPlane) -> Result<Self> {
        let source = Module::source(Binary::Karpenter, MODULE)?;
        for crds in ["pkg/apis/crds", "kwok/apis/crds"] {
            let crds = source.join(crds).display().to_string();
            plane.kubectl(&["create", "-f", &crds])?;
        }
        await_served(plane, &["nodepools", "nodeclaims", "kwoknodeclasses"])?;
        create_objects(plane, &node_class())?;
        create_objects(plane, &node_pool())?;
        let arguments = [
            "--disable-leader-election=true",
            "--metrics-port=0",
            "--health-probe-port=0",
        ];
        let variables = [("SYSTEM_NAMESPACE", "default")];
        let program = Program::start(plane, Binary::Karpenter, &arguments, &variables)?;
        let mut nodes = Vec::new();
        for claim in ["held", "free"] {
            create_objects(plane, &node_claim(claim, &uid_of_pool(plane)?))?;
            let node = ready_node(plane, claim).with_context(|| program.log())?;
            nodes.push(node);
        }
        let nodes = <[String; 2]>::try_from(nodes).ok().context("two nodes")?;
        Ok(Self {
            plane,
            program,
            nodes,
        })
    }
}

impl Tool for Karpenter<'_> {
    fn nodes(&self) -> [&str; 2] {
        self.nodes.each_ref().map(String::as_str)
    }

    /// Makes Karpenter remove empty nodes.
    fn begin(&mut self) -> Result<()> {
        let patch = json!({"spec": {"disruption": {"consolidateAfter": "0s"}}}).to_string();
        let patch = ["patch", "nodepool", "all", "--type=merge", "-p", &patch];
        self.plane.kubectl(&patch).map(drop)
    }

    fn is_disrupted(&self, node: &str) -> Result<bool> {
        let found = self.plane.kubectl(&[
            "get",
            "node",
            node,
            "--ignore-not-found",
            "-o",
            "jsonpath={.metadata.deletionTimestamp}{.spec.taints[*].key}{.metadata.name}",
        ])?;
        Ok(found != node)
    }

    fn log(&self) -> String {
        self.program.log()
    }
}

/// Waits for the node of a claim, and reports it as ready, as its kubelet would.
fn ready_node(plane: &ControlPlane, claim: &str) -> Result<String> {
    let mut node = String::new();
    wait(&format!("a node for {claim}"), LIMIT, || {
        let claim = get(plane, &["nodeclaim", claim])?;
        claim["status"]["nodeName"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut node);
        Ok(!node.is_empty())
    })?;
    let ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady",
    }]}});
    plane.kubectl(&[
        "patch",
        "node",
        &node,
        "--subresource=status",
        "-p",
        &ready.to_string(),
    ])?;
    plane.kubectl(&[
        "wait",
        "nodeclaim",
        claim,
        "--for=condition=Initialized",
        "--timeout=120s",
    ])?;
    Ok(node)
}

fn uid_of_pool(plane: &ControlPlane) -> Result<String> {
    let pool = get(plane, &["nodepool", "all"])?;
    let uid = pool["metadata"]["uid"].as_str().context("no uid")?;
    Ok(uid.to_owned())
}

fn class() -> Value {
    json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "all"})
}

fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
        "metadata": {"name": "all"},
    })
}

/// A pool in which empty nodes stay at first.
fn node_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "all"},
        "spec": {
            "disruption": {
                "consolidateAfter": "Never",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "100%"}],
            },
            "template": {"spec": {
                "requirements": [],
                "nodeClassRef": class(),
                "expireAfter": "Never",
            }},
        },
    })
}

/// A claim like one that Karpenter creates from its pool for pods that fit on no node.
fn node_claim(name: &str, uid_of_pool: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {"karpenter.sh/nodepool": "all"},
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "all", "uid": uid_of_pool,
            }],
        },
        "spec": {
            "nodeClassRef": class(),
            "expireAfter": "Never",
            "requirements": [{
                "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-1x-amd64-linux"],
            }],
        },
    })
}
