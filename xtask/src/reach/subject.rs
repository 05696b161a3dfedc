//! The proof for one tool.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use control_plane::{Binary, Builder, ControlPlane};

use super::program::{LIMIT, maint};
use crate::go::Module;
use crate::output::print;
use crate::real_cluster::wait;

/// The node to hold, and the node to compare it with.
pub(super) const NODES: [&str; 2] = ["held", "free"];

/// A disruption of nodes by another tool.
pub(super) struct Subject {
    /// Its name in the arguments of `cargo xtask reach`.
    pub(super) name: &'static str,
    pub(super) tool: &'static str,
    pub(super) binary: Binary,
    /// The Go module of the tool, which determines its version.
    pub(super) module: &'static str,
    /// The effect of the tool on a node.
    pub(super) does: &'static str,
    /// Whether a hold stops it.
    pub(super) is_stopped: bool,
    /// How much longer the node on hold is observed after the other node was disrupted.
    pub(super) observed: Duration,
    pub(super) plane: fn(Builder) -> Builder,
    pub(super) start: fn(&ControlPlane) -> Result<Box<dyn Tool + '_>>,
}

/// A tool that runs on its own control plane, with two nodes.
pub(super) trait Tool {
    /// The node to hold, and the node to compare it with.
    fn nodes(&self) -> [&str; 2] {
        NODES
    }

    /// Lets the tool disrupt both nodes.
    fn begin(&mut self) -> Result<()>;

    /// Whether the tool has disrupted the node, or has begun to.
    fn is_disrupted(&self, node: &str) -> Result<bool>;

    /// Called after the node that is not on hold was disrupted.
    fn go_on(&mut self) -> Result<()> {
        Ok(())
    }

    /// The output of the tool.
    fn log(&self) -> String;
}

impl Subject {
    /// Runs the proof, and returns a row of the table.
    pub(super) fn prove(&self) -> Result<String> {
        print(format_args!("{}: starts", self.name));
        let plane = (self.plane)(ControlPlane::builder()).start()?;
        plane.kubectl(&["create", "namespace", "kube-node-maintenance"])?;
        let mut tool = (self.start)(&plane)?;
        let proven = self.prove_on(&plane, tool.as_mut());
        proven.with_context(|| format!("its log:\n{}", tool.log()))?;
        let on_hold = match self.is_stopped {
            true => format!("no, for {} s", self.observed.as_secs()),
            false => "yes".to_owned(),
        };
        let after = if self.is_stopped { "yes" } else { "" };
        let version = Module::version(self.binary, self.module)?;
        Ok(format!(
            "| {} {version} | {} | yes | {on_hold} | {after} |",
            self.tool, self.does
        ))
    }

    fn prove_on(&self, plane: &ControlPlane, tool: &mut dyn Tool) -> Result<()> {
        let [held, free] = tool.nodes().map(str::to_owned);
        maint(plane, &["hold", &held, "-m", "debugging"])?;
        ensure!(
            !tool.is_disrupted(&held)? && !tool.is_disrupted(&free)?,
            "disrupted too early"
        );
        tool.begin()?;
        wait(self.does, LIMIT, || tool.is_disrupted(&free))?;
        print(format_args!("{}: disrupted the other node", self.name));
        if !self.is_stopped {
            wait("the node on hold, too", LIMIT, || tool.is_disrupted(&held))?;
            print(format_args!(
                "{}: disrupted the node on hold, too",
                self.name
            ));
            return Ok(());
        }
        tool.go_on()?;
        thread::sleep(self.observed);
        ensure!(!tool.is_disrupted(&held)?, "the node on hold is disrupted");
        print(format_args!(
            "{}: left the node on hold alone for {} s",
            self.name,
            self.observed.as_secs()
        ));
        maint(plane, &["unhold", &held])?;
        wait("the same after unhold", LIMIT, || tool.is_disrupted(&held))?;
        print(format_args!("{}: disrupted it after unhold", self.name));
        Ok(())
    }
}
