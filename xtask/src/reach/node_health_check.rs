//! NodeHealthCheck of medik8s, which remediates nodes that are not ready.

use std::time::Duration;

use anyhow::Result;
use control_plane::{Binary, ControlPlane, Kubelets};
use serde_json::{Value, json};

use super::program::{Program, await_served};
use super::subject::{NODES, Subject, Tool};
use crate::go::Module;
use crate::real_cluster::{create_objects, get};

const OPERATOR: &str = "github.com/medik8s/node-healthcheck-operator";

/// The age of the last heartbeat of an unreachable node.
const HEARTBEAT_AGE: Duration = Duration::from_secs(300);

/// The label of the nodes that the operator observes.
const WORKER: &str = "node-role.kubernetes.io/worker";

const GROUP: &str = "self-node-remediation.medik8s.io";
const VERSION: &str = "v1alpha1";

/// The kinds of objects by which the operator requests a remediation, and their names in the API.
const KINDS: [(&str, &str); 2] = [
    ("SelfNodeRemediation", "selfnoderemediations"),
    (
        "SelfNodeRemediationTemplate",
        "selfnoderemediationtemplates",
    ),
];

pub(super) const REMEDIATION: Subject = Subject {
    name: "node-healthcheck",
    tool: "medik8s NodeHealthCheck",
    binary: Binary::NodeHealthCheck,
    module: OPERATOR,
    does: "remediates an unreachable node",
    is_stopped: true,
    observed: Duration::from_secs(20),
    plane: |builder| builder.for_unreachable_nodes(),
    start: |plane| Ok(Box::new(NodeHealthCheck::start(plane)?)),
};

struct NodeHealthCheck<'p> {
    plane: &'p ControlPlane,
    kubelets: Kubelets,
    operator: Program,
}

impl<'p> NodeHealthCheck<'p> {
    /// Starts with three nodes, because a cluster without any healthy node is not remediated.
    fn start(plane: &'p ControlPlane) -> Result<Self> {
        let kubelets = plane.kubelets(&["held", "free", "well"], &[(WORKER, "")])?;
        let source = Module::source(Binary::NodeHealthCheck, OPERATOR)?;
        let crds = source.join("config/crd/bases");
        plane.kubectl(&["create", "-f", &crds.to_string_lossy()])?;
        for kind in KINDS {
            create_objects(plane, &definition(kind))?;
        }
        await_served(plane, &[KINDS[0].1, KINDS[1].1, "nodehealthchecks"])?;
        create_objects(plane, &template())?;
        create_objects(plane, &health_check())?;
        let arguments = [
            "--leader-elect=false",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
        ];
        let variables = [("DEPLOYMENT_NAMESPACE", "default")];
        let operator = Program::start(plane, Binary::NodeHealthCheck, &arguments, &variables)?;
        Ok(Self {
            plane,
            kubelets,
            operator,
        })
    }
}

impl Tool for NodeHealthCheck<'_> {
    fn begin(&mut self) -> Result<()> {
        for node in NODES {
            self.kubelets.stop_heartbeats(node, HEARTBEAT_AGE)?;
        }
        Ok(())
    }

    fn is_disrupted(&self, node: &str) -> Result<bool> {
        let all = get(self.plane, &[KINDS[0].1, "-A"])?;
        let mut all = all["items"].as_array().into_iter().flatten();
        Ok(all.any(|one| one["metadata"]["name"] == *node))
    }

    fn log(&self) -> String {
        self.operator.log()
    }
}

/// A custom resource definition that allows any fields.
fn definition((kind, plural): (&str, &str)) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn template() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KINDS[1].0,
        "metadata": {"name": "automatic", "namespace": "default"},
        "spec": {"template": {"spec": {}}},
    })
}

/// A health check that remediates every node that is not ready.
fn health_check() -> Value {
    let unhealthy = ["False", "Unknown"]
        .map(|status| json!({"type": "Ready", "status": status, "duration": "1s"}));
    json!({
        "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck",
        "metadata": {"name": "all"},
        "spec": {
            "selector": {"matchExpressions": [{"key": WORKER, "operator": "Exists"}]},
            "minHealthy": "0%",
            "unhealthyConditions": unhealthy,
            "remediationTemplate": {
                "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KINDS[1].0,
                "name": "automatic", "namespace": "default",
            },
        },
    })
}
