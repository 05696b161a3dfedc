//! Flatcar Linux Update Operator, which decides which node may reboot.

use std::time::Duration;

use anyhow::Result;
use control_plane::{Binary, ControlPlane, Kubelets};

use super::program::Program;
use super::subject::{NODES, Subject, Tool};
use crate::real_cluster::get;

const PREFIX: &str = "flatcar-linux-update.v1.flatcar-linux.net";

pub(super) const REBOOT: Subject = Subject {
    name: "fluo",
    tool: "Flatcar update operator",
    binary: Binary::FlatcarUpdateOperator,
    module: "github.com/flatcar/flatcar-linux-update-operator",
    does: "lets a node reboot",
    is_stopped: true,
    // It checks every 30 s, and only one node reboots at a time. The other node is done after two such checks.
    observed: Duration::from_secs(150),
    plane: |builder| builder,
    start: |plane| Ok(Box::new(Fluo::start(plane)?)),
};

struct Fluo<'p> {
    plane: &'p ControlPlane,
    _kubelets: Kubelets,
    operator: Program,
}

impl<'p> Fluo<'p> {
    fn start(plane: &'p ControlPlane) -> Result<Self> {
        // The operator can't label a node that has no labels.
        let kubelets = plane.kubelets(&NODES, &[("kubernetes.io/os", "linux")])?;
        let variables = [("POD_NAMESPACE", "default")];
        let operator = Program::start(plane, Binary::FlatcarUpdateOperator, &[], &variables)?;
        let fluo = Self {
            plane,
            _kubelets: kubelets,
            operator,
        };
        // The agent on each node sets these annotations when it starts. They show `hold` that the operator is present.
        for node in NODES {
            fluo.annotate(node, &["reboot-needed=false", "reboot-in-progress=false"])?;
        }
        Ok(fluo)
    }

    fn annotate(&self, node: &str, values: &[&str]) -> Result<()> {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("{PREFIX}/{value}"))
            .collect();
        let mut arguments = vec!["annotate", "--overwrite", "node", node];
        arguments.extend(values.iter().map(String::as_str));
        self.plane.kubectl(&arguments).map(drop)
    }
}

impl Tool for Fluo<'_> {
    /// The agents request a reboot.
    fn begin(&mut self) -> Result<()> {
        for node in NODES {
            self.annotate(node, &["reboot-needed=true"])?;
        }
        Ok(())
    }

    fn is_disrupted(&self, node: &str) -> Result<bool> {
        let node = get(self.plane, &["node", node])?;
        Ok(node["metadata"]["annotations"][format!("{PREFIX}/reboot-ok")] == "true")
    }

    /// The agent on the other node reports that it has rebooted. Then the node on hold would be next.
    fn go_on(&mut self) -> Result<()> {
        self.annotate("free", &["reboot-needed=false"])
    }

    fn log(&self) -> String {
        self.operator.log()
    }
}
