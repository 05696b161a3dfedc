//! `cargo xtask cluster`: runs a real control plane for experiments.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context as _, Result};
use control_plane::{Binary, ControlPlane, NodeSpec};
use tokio::signal::unix::{SignalKind, signal};

use crate::cargo::build_plugin;
use crate::control_plane::ensure_built;
use crate::output::print;
use crate::sandbox_cluster::{HEARTBEAT, SandboxCluster, export_line, kubectl, tools};

/// Run a real control plane with nodes until you press Ctrl-C
///
/// Prints an `export` line on stdout for another shell: KUBECONFIG, and PATH with the plugin and
/// kubectl.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Number of nodes: worker-1, worker-2 and so on
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,

    /// Use an API server in memory instead of a real control plane
    #[arg(long)]
    sandbox: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if self.sandbox {
            return self.run_sandbox();
        }
        ensure_built(&Binary::CONTROL_PLANE)?;
        build_plugin()?;
        print("starting etcd, kube-apiserver and kube-controller-manager");
        let control_plane = ControlPlane::builder()
            .controller_manager_flag("--node-monitor-grace-period=50s")
            .start()?;
        let names = self.names();
        let nodes: Vec<NodeSpec> = names.iter().map(|name| NodeSpec::ready(name)).collect();
        control_plane.create_nodes(&nodes)?;
        control_plane.kubectl(&["create", "namespace", "kube-node-maintenance"])?;
        print("running until Ctrl-C; in another shell, run:");
        print_exports(control_plane.admin_kubeconfig(), &Binary::Kubectl.locate()?)?;
        keep_alive(&control_plane, &names)?;
        print("stopping");
        Ok(())
    }

    fn run_sandbox(self) -> Result<()> {
        build_plugin()?;
        let kubectl = kubectl()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let nodes = self.names();
            let cluster =
                SandboxCluster::start(nodes.iter().map(|name| sandbox::Node::named(name))).await?;
            print("running until Ctrl-C; in another shell, run:");
            print_exports(&cluster.kubeconfig(), &kubectl)?;
            ended().await?;
            print("stopping");
            Ok(())
        })
    }

    fn names(&self) -> Vec<String> {
        (1..=self.nodes)
            .map(|number| format!("worker-{number}"))
            .collect()
    }
}

fn print_exports(kubeconfig: &Path, kubectl: &Path) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", export_line(kubeconfig, &tools(kubectl)))?;
    stdout.flush().context("failed to print")
}

/// Waits for a signal that asks this process to end.
async fn ended() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

/// Renews the nodes' heartbeats until a signal asks this process to end.
fn keep_alive(control_plane: &ControlPlane, nodes: &[String]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        let mut ended = std::pin::pin!(ended());
        loop {
            tokio::select! {
                _ = heartbeat.tick() => {
                    if let Err(error) = control_plane.heartbeat(nodes) {
                        print(format_args!("warning: no heartbeat for the nodes: {error:#}"));
                    }
                }
                result = &mut ended => return result,
            }
        }
    })
}
