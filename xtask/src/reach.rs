//! Proves on other projects' programs that a hold keeps them from a node.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use control_plane::{Binary, ControlPlane, target_dir};
use serde_json::json;
use tempfile::TempDir;

use crate::cargo::{build_plugin, run};
use crate::control_plane::ensure_built;
use crate::go::Module;
use crate::output::print;
use crate::real_cluster::{create_objects, get, wait};

/// How old the last heartbeat of an unreachable node is.
const HEARTBEAT_AGE: Duration = Duration::from_secs(300);

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How much longer the node on hold is observed after the other node was remediated.
const OBSERVED: Duration = Duration::from_secs(20);

/// The label of the nodes that the operator observes.
const WORKER: &str = "node-role.kubernetes.io/worker";

const OPERATOR: &str = "github.com/medik8s/node-healthcheck-operator";

const GROUP: &str = "self-node-remediation.medik8s.io";

/// The kinds of objects with which NodeHealthCheck asks for a remediation, and their names in the API.
const KINDS: [(&str, &str); 2] = [
    ("SelfNodeRemediation", "selfnoderemediations"),
    (
        "SelfNodeRemediationTemplate",
        "selfnoderemediationtemplates",
    ),
];

/// Prove that other tools leave a node on hold alone
///
/// Runs the operator NodeHealthCheck of medik8s on a real control plane. Two nodes become unreachable, and one of them is
/// on hold. The operator must remediate the other node only. It must remediate the node on hold after `unhold`. The first
/// run compiles the operator.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        build_plugin()?;
        ensure_built(&Binary::CONTROL_PLANE)?;
        ensure_built(&[Binary::NodeHealthCheck])?;
        let plane = ControlPlane::builder().for_unreachable_nodes().start()?;
        plane.kubectl(&["create", "namespace", "kube-node-maintenance"])?;
        let nodes = ["held", "free", "well"];
        let kubelets = plane.kubelets(&nodes, &[(WORKER, "")])?;
        let operator = Operator::start(&plane)?;
        maint(&plane, &["hold", "held", "-m", "debugging"])?;
        for node in ["held", "free"] {
            kubelets.stop_heartbeats(node, HEARTBEAT_AGE)?;
        }
        let is_remediated = |node: &str| {
            let all = get(&plane, &["selfnoderemediations", "-A"])?;
            let mut all = all["items"].as_array().into_iter().flatten();
            Ok(all.any(|one| one["metadata"]["name"] == *node))
        };
        let proven = (|| {
            wait("the free node is remediated", LIMIT, || {
                is_remediated("free")
            })?;
            print("node/free: remediated");
            thread::sleep(OBSERVED);
            ensure!(!is_remediated("held")?, "the node on hold is remediated");
            print("node/held: not remediated");
            maint(&plane, &["unhold", "held"])?;
            wait("the other node is remediated after unhold", LIMIT, || {
                is_remediated("held")
            })?;
            print("node/held, after unhold: remediated");
            ensure!(!is_remediated("well")?, "a healthy node is remediated");
            Ok(())
        })();
        proven.with_context(|| format!("the log of the operator:\n{}", operator.log()))
    }
}

/// The running operator. Dropping it ends it.
struct Operator {
    process: Child,
    directory: TempDir,
}

impl Operator {
    /// Installs what it needs, and starts it.
    fn start(plane: &ControlPlane) -> Result<Self> {
        let source = Module::source(Binary::NodeHealthCheck, OPERATOR)?;
        let crds = source.join("config/crd/bases");
        plane.kubectl(&["create", "-f", &crds.to_string_lossy()])?;
        for (kind, plural) in KINDS {
            create_objects(plane, &definition(kind, plural))?;
        }
        for name in [KINDS[0].1, KINDS[1].1, "nodehealthchecks"] {
            wait(&format!("{name} are served"), LIMIT, || {
                Ok(plane.kubectl(&["get", name]).is_ok())
            })?;
        }
        create_objects(plane, &template())?;
        create_objects(plane, &health_check())?;
        let directory = tempfile::tempdir()?;
        let certificates = directory.path().join("k8s-webhook-server/serving-certs");
        fs::create_dir_all(&certificates)?;
        let identity = plane.authority().server(&["localhost"])?;
        fs::write(certificates.join("tls.crt"), &identity.cert_pem)?;
        fs::write(certificates.join("tls.key"), &identity.key_pem)?;
        let log = File::create(log(directory.path()))?;
        let process = Command::new(Binary::NodeHealthCheck.locate()?)
            .args([
                "--leader-elect=false",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
            ])
            .env_clear()
            .env("KUBECONFIG", plane.admin_kubeconfig())
            .env("TMPDIR", directory.path())
            .env("DEPLOYMENT_NAMESPACE", "default")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { process, directory })
    }

    fn log(&self) -> String {
        fs::read_to_string(log(self.directory.path())).unwrap_or_default()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn log(directory: &Path) -> std::path::PathBuf {
    directory.join("log")
}

/// Runs the plugin as an administrator.
fn maint(plane: &ControlPlane, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(target_dir().join("debug/kubectl-maint"));
    command
        .args(arguments)
        .env_clear()
        .env("KUBECONFIG", plane.admin_kubeconfig())
        .env("HOME", plane.directory());
    run(&mut command)
}

/// A kind with any fields.
fn definition(kind: &str, plural: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn template() -> serde_json::Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": KINDS[1].0,
        "metadata": {"name": "automatic", "namespace": "default"},
        "spec": {"template": {"spec": {}}},
    })
}

/// Remediates every node that is not ready.
fn health_check() -> serde_json::Value {
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
                "apiVersion": format!("{GROUP}/v1alpha1"), "kind": KINDS[1].0,
                "name": "automatic", "namespace": "default",
            },
        },
    })
}
