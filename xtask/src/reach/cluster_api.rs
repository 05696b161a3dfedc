//! Cluster API, which deletes the Machines of nodes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use control_plane::{Binary, ControlPlane, Kubelets};
use serde_json::{Value, json};

use super::program::{LIMIT, Program, await_served, definition};
use super::subject::{NODES, Subject, Tool};
use crate::go::Module;
use crate::real_cluster::{create_objects, get, wait};

const MODULE: &str = "sigs.k8s.io/cluster-api";

/// The age of the last heartbeat of an unreachable node.
const HEARTBEAT_AGE: Duration = Duration::from_secs(300);

/// The API group of the stand-ins that provide machines and control planes, and their kinds with their names in the
/// API.
const PROVIDER: &str = "provider.example.com";
const PROVIDER_VERSION: &str = "v1";
const PROVIDED: [(&str, &str); 4] = [
    ("StandInCluster", "standinclusters"),
    ("StandInControlPlane", "standincontrolplanes"),
    ("StandInMachine", "standinmachines"),
    ("StandInMachineTemplate", "standinmachinetemplates"),
];

const CLUSTER: &str = "self";

pub(super) const HEALTH_CHECK: Subject = Subject {
    name: "cluster-api-health-check",
    tool: "Cluster API",
    binary: Binary::ClusterApi,
    module: MODULE,
    does: "a MachineHealthCheck deletes the Machine of an unreachable node",
    is_stopped: true,
    observed: Duration::from_secs(30),
    plane: |builder| builder.for_unreachable_nodes(),
    start: |plane| Ok(Box::new(ClusterApi::start(plane, Cause::HealthCheck)?)),
};

pub(super) const DELETION: Subject = Subject {
    name: "cluster-api-deletion",
    does: "drains the node of a deleted Machine, and deletes it",
    plane: |builder| builder,
    start: |plane| Ok(Box::new(ClusterApi::start(plane, Cause::Deletion)?)),
    ..HEALTH_CHECK
};

/// The reason why Machines are deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    HealthCheck,
    Deletion,
}

/// A cluster that manages itself.
struct ClusterApi<'p> {
    plane: &'p ControlPlane,
    cause: Cause,
    kubelets: Kubelets,
    program: Program,
    /// The Machines of the nodes.
    machines: [String; 2],
}

impl<'p> ClusterApi<'p> {
    fn start(plane: &'p ControlPlane, cause: Cause) -> Result<Self> {
        let kubelets = plane.kubelets(&NODES, &[])?;
        let source = Module::source(Binary::ClusterApi, MODULE)?;
        let crds = source.join("core/config/crd/bases").display().to_string();
        plane.kubectl(&["create", "-f", &crds])?;
        // The label names the version of Cluster API's contract that these kinds follow.
        let labels = json!({"cluster.x-k8s.io/v1beta2": PROVIDER_VERSION});
        for kind in PROVIDED {
            create_objects(
                plane,
                &definition(PROVIDER, PROVIDER_VERSION, kind, &labels),
            )?;
        }
        let plurals = PROVIDED.map(|(_, plural)| plural);
        await_served(plane, &plurals)?;
        await_served(plane, &["clusters", "machinesets", "machinehealthchecks"])?;
        let arguments = [
            "--diagnostics-address=127.0.0.1:0",
            "--insecure-diagnostics",
            "--health-addr=127.0.0.1:0",
            "--webhook-cert-dir=k8s-webhook-server/serving-certs",
            "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
        ];
        let program = Program::start(plane, Binary::ClusterApi, &arguments, &[])?;
        let started = create_cluster(plane).and_then(|()| provide_machines(plane));
        let machines = started.with_context(|| format!("its log:\n{}", program.log()))?;
        Ok(Self {
            plane,
            cause,
            kubelets,
            program,
            machines,
        })
    }

    fn machine(&self, node: &str) -> &str {
        let [held, free] = &self.machines;
        if node == "held" { held } else { free }
    }
}

impl Tool for ClusterApi<'_> {
    /// The management cluster is this cluster itself.
    fn hold_arguments(&self) -> &[&str] {
        &["--management-context", "admin"]
    }

    fn begin(&mut self) -> Result<()> {
        for node in NODES {
            match self.cause {
                Cause::HealthCheck => self.kubelets.stop_heartbeats(node, HEARTBEAT_AGE)?,
                Cause::Deletion => {
                    let machine = self.machine(node);
                    self.plane
                        .kubectl(&["delete", "machine", machine, "--wait=false"])?;
                }
            }
        }
        Ok(())
    }

    fn is_disrupted(&self, node: &str) -> Result<bool> {
        let (what, field) = match self.cause {
            Cause::HealthCheck => (
                ["machine", self.machine(node)],
                "{.metadata.deletionTimestamp}",
            ),
            Cause::Deletion => (["node", node], "{.spec.unschedulable}"),
        };
        let field = format!("jsonpath={{.metadata.name}}{field}");
        let arguments = ["get", what[0], what[1], "--ignore-not-found", "-o", &field];
        Ok(self.plane.kubectl(&arguments)? != what[1])
    }

    fn log(&self) -> String {
        self.program.log()
    }
}

/// Creates a cluster with two Machines, and a health check for them.
fn create_cluster(plane: &ControlPlane) -> Result<()> {
    let kubeconfig = fs::read_to_string(plane.admin_kubeconfig())?;
    let (host, port) = plane
        .url()
        .trim_start_matches("https://")
        .rsplit_once(':')
        .context("no port")?;
    let endpoint = json!({"host": host, "port": port.trim_end_matches('/').parse::<u16>()?});
    let [infrastructure, control_plane, _, template] = PROVIDED.map(|(kind, _)| kind);
    let provided = |kind: &str, spec: Value| {
        json!({
            "apiVersion": format!("{PROVIDER}/{PROVIDER_VERSION}"), "kind": kind,
            "metadata": {"name": CLUSTER, "namespace": "default"}, "spec": spec,
        })
    };
    let reference = |kind: &str| json!({"apiGroup": PROVIDER, "kind": kind, "name": CLUSTER});
    let core = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
            "metadata": {"name": CLUSTER, "namespace": "default"}, "spec": spec,
        })
    };
    let labels = json!({"cluster.x-k8s.io/cluster-name": CLUSTER, "set": CLUSTER});
    let objects = [
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": format!("{CLUSTER}-kubeconfig"), "namespace": "default",
                "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER},
            },
            "stringData": {"value": kubeconfig},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "bootstrap", "namespace": "default"},
        }),
        provided(infrastructure, json!({"controlPlaneEndpoint": endpoint})),
        provided(control_plane, json!({})),
        provided(template, json!({"template": {"spec": {}}})),
        core(
            "Cluster",
            json!({
                "controlPlaneEndpoint": endpoint,
                "infrastructureRef": reference(infrastructure),
                "controlPlaneRef": reference(control_plane),
            }),
        ),
        core(
            "MachineSet",
            json!({
                "clusterName": CLUSTER, "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "clusterName": CLUSTER,
                        "bootstrap": {"dataSecretName": "bootstrap"},
                        "infrastructureRef": reference(template),
                    },
                },
            }),
        ),
        core(
            "MachineHealthCheck",
            json!({
                "clusterName": CLUSTER,
                "selector": {"matchLabels": labels},
                "checks": {"unhealthyNodeConditions": [
                    {"type": "Ready", "status": "Unknown", "timeoutSeconds": 0},
                ]},
            }),
        ),
    ];
    for object in &objects {
        create_objects(plane, object)?;
    }
    set_status(
        plane,
        PROVIDED[0].1,
        CLUSTER,
        &json!({"initialization": {"provisioned": true}}),
    )?;
    set_status(
        plane,
        PROVIDED[1].1,
        CLUSTER,
        // Without Machines of the control plane, Cluster API would neither drain nor delete a node.
        &json!({
            "initialization": {"controlPlaneInitialized": true},
            "externalManagedControlPlane": true,
        }),
    )
}

/// Assigns a node to each Machine, as a provider does. Waits until the Nodes have the names of their Machines.
fn provide_machines(plane: &ControlPlane) -> Result<[String; 2]> {
    let plural = PROVIDED[2].1;
    let mut names = Vec::new();
    wait("two Machines", LIMIT, || {
        let found = get(plane, &[plural])?;
        let found = found["items"].as_array().into_iter().flatten();
        let name = |one: &Value| Some(one["metadata"]["name"].as_str()?.to_owned());
        names = found.filter_map(name).collect();
        Ok(names.len() == NODES.len())
    })?;
    for (name, node) in names.iter().zip(NODES) {
        let spec = json!({"spec": {"providerID": format!("stand-in://{node}")}}).to_string();
        plane.kubectl(&["patch", plural, name, "--type=merge", "-p", &spec])?;
        let status = json!({"initialization": {"provisioned": true}});
        set_status(plane, plural, name, &status)?;
    }
    let mut machines = Vec::new();
    for node in NODES {
        wait(&format!("the Machine of {node}"), LIMIT, || {
            let found = get(plane, &["node", node])?;
            let machine = &found["metadata"]["annotations"]["cluster.x-k8s.io/machine"];
            machines.extend(machine.as_str().map(str::to_owned));
            Ok(machine.is_string())
        })?;
    }
    <[String; 2]>::try_from(machines)
        .ok()
        .context("two Machines")
}

fn set_status(plane: &ControlPlane, plural: &str, name: &str, status: &Value) -> Result<()> {
    let patch = json!({"status": status}).to_string();
    let arguments = [
        "patch",
        plural,
        name,
        "--type=merge",
        "--subresource=status",
        "-p",
        &patch,
    ];
    plane.kubectl(&arguments).map(drop)
}
