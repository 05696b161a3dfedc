//! Flatcar Linux Update Operator, which says which node may reboot.

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
    // It looks every 30 s, and one node at a time reboots. The other one is done after two such rounds.
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
        // It can't mark a node without any label.
        let kubelets = plane.kubelets(&NODES, &[("kubernetes.io/os", "linux")])?;
        let variables = [("POD_NAMESPACE", "default")];
        let operator = Program::start(plane, Binary::FlatcarUpdateOperator, &[], &variables)?;
        let fluo = Self {
            plane,
            _kubelets: kubelets,
            operator,
        };
        // What the agent on each node does at its start. `hold` knows by it that the operator is there.
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
    /// The agents ask for a reboot.
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

    /// The agent on the other node says that it has rebooted, so that it is the turn of the node on hold.
    fn go_on(&mut self) -> Result<()> {
        self.annotate("free", &["reboot-needed=false"])
    }

    fn log(&self) -> String {
        self.operator.log()
    }
}
