//! The cost of the report of `force-delete` on an unreachable node.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use control_plane::{ControlPlane, NodeSpec, Readiness};
use serde_json::{Value, json};

use super::command_cost::{Tools, cost, median};
use crate::output::result;

const NODE: &str = "bench-unreachable";
const NAMESPACES: [&str; 2] = ["bench-shop", "bench-bank"];

/// The number of pods on the node.
const PODS: usize = 110;

/// How often the report is measured.
const ROUNDS: usize = 20;

/// The size of the other fields of a typical pod, in bytes.
const WEIGHT: usize = 5_000;

/// Measures `force-delete` of the node up to its report.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    plane.create_nodes(&[
        NodeSpec {
            ready: Readiness::Unknown,
            heartbeat_age: Duration::from_secs(600),
            ..NodeSpec::ready(NODE)
        },
        NodeSpec::ready("bench-ready-1"),
        NodeSpec::ready("bench-ready-2"),
    ])?;
    for namespace in NAMESPACES {
        make_pods(plane, namespace, PODS / NAMESPACES.len())?;
    }
    let node = format!("node/{NODE}");
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        costs.push(cost(&tools.refused(&["force-delete", &node]))?);
    }
    let median = median(&costs);
    result(format_args!(
        "report on an unreachable node with {PODS} pods in {} namespaces: {:.1} ms, cpu {:.1} ms, {:.1} MiB\n  target: \
         under 1 s",
        NAMESPACES.len(),
        median.wall.as_secs_f64() * 1000.0,
        median.cpu.as_secs_f64() * 1000.0,
        median.memory as f64 / 1024.0,
    ));
    Ok(())
}

/// Creates a namespace with this many pods on the node, each with a claim, in one StatefulSet.
fn make_pods(plane: &ControlPlane, namespace: &str, count: usize) -> Result<()> {
    plane.kubectl(&["create", "namespace", namespace])?;
    let container = json!({"name": "main", "image": "registry.example/web:1"});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": count,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container]},
            },
        },
    });
    create(plane, &[set])?;
    let uid = plane.kubectl(&[
        "get",
        "statefulset",
        "web",
        "-n",
        namespace,
        "-o",
        "jsonpath={.metadata.uid}",
    ])?;
    let objects = (0..count).flat_map(|index| {
        let claim = format!("data-{index}");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("web-{index}"),
                "namespace": namespace,
                "labels": {"app": "web"},
                "annotations": {"weight": "x".repeat(WEIGHT)},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": uid.trim(),
                    "controller": true,
                }],
            },
            "spec": {
                "nodeName": NODE,
                "containers": [container],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            },
        });
        let volume = format!("{namespace}-{index}");
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": volume,
            },
        });
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "csi.example.com", "volumeHandle": volume},
            },
        });
        [volume, claim, pod]
    });
    create(plane, &objects.collect::<Vec<_>>())
}

fn create(plane: &ControlPlane, objects: &[Value]) -> Result<()> {
    let file = tempfile::NamedTempFile::new().context("a file for objects")?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(file.path(), list.to_string())?;
    let path = file.path().display().to_string();
    plane.kubectl(&["create", "-f", &path]).map(drop)
}
