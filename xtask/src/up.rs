//! `cargo xtask up`: a real control plane to try things on.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use control_plane::{Binary, ControlPlane, NodeSpec, target_dir};
use tokio::signal::unix::{SignalKind, signal};

use crate::cargo::build_plugin;
use crate::control_plane::ensure_built;
use crate::say::say;

/// As often as kubelets do.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Leave a real control plane running, with nodes, until it is ended with Ctrl-C
///
/// Prints two `export` lines for another shell on stdout: KUBECONFIG, and PATH with the plugin and
/// kubectl.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many nodes there are: node-1, node-2 and so on
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        ensure_built(&Binary::ALL)?;
        build_plugin()?;
        say("starting etcd, kube-apiserver and kube-controller-manager");
        let control_plane = ControlPlane::builder()
            .controller_manager_flag("--node-monitor-grace-period=50s")
            .start()?;
        let names: Vec<String> = (1..=self.nodes)
            .map(|number| format!("node-{number}"))
            .collect();
        let nodes: Vec<NodeSpec> = names.iter().map(|name| NodeSpec::ready(name)).collect();
        control_plane.create_nodes(&nodes)?;
        say("running until it is ended with Ctrl-C; for another shell:");
        print_exports(&control_plane)?;
        keep_alive(&control_plane, &names)?;
        say("ending");
        Ok(())
    }
}

fn print_exports(control_plane: &ControlPlane) -> Result<()> {
    let kubectl = Binary::Kubectl.locate()?;
    let plugin = target_dir().join("debug");
    let kubectl = kubectl.parent().unwrap_or(Path::new("."));
    let mut stdout = io::stdout().lock();
    writeln!(
        stdout,
        "export KUBECONFIG={}",
        quoted(control_plane.admin_kubeconfig())
    )?;
    writeln!(
        stdout,
        "export PATH={}:{}:\"$PATH\"",
        quoted(&plugin),
        quoted(kubectl)
    )?;
    stdout.flush().context("failed to print")
}

/// Renews the nodes' heartbeats until a signal asks for the end.
fn keep_alive(control_plane: &ControlPlane, nodes: &[String]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                _ = heartbeat.tick() => {
                    if let Err(error) = control_plane.heartbeat(nodes) {
                        say(format_args!("warning: no heartbeat for the nodes: {error:#}"));
                    }
                }
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = hang_up.recv() => return Ok(()),
            }
        }
    })
}

/// For a POSIX shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word_to_a_shell() {
        assert_eq!(
            quoted(Path::new("/home/o'neil/a b")),
            r"'/home/o'\''neil/a b'"
        );
    }
}
