//! Holders and waiters of the library, in a separate process: it is a release build, and does not affect the program
//! that runs the benchmark.

mod hand_over;
mod many_waiters;
mod server;
mod takeover;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use control_plane::{ControlPlane, NodeSpec};

use self::server::Server;
use super::command_cost::optimized_xtask;
use crate::cargo::run;

/// How often a lock changes its holder.
const HAND_OVERS: usize = 200;
/// How many holders stop without a release.
const CRASHES: usize = 10;
/// How many clients wait for one lock.
const WAITERS: usize = 200;

/// Measures all scenarios, each in a separate process.
pub(super) fn measure(plane: &ControlPlane) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..CRASHES)
        .map(|number| NodeSpec::ready(&format!("crash-{number}")))
        .chain(["hand-over", "many-waiters"].map(NodeSpec::ready))
        .collect();
    plane.create_nodes(&nodes)?;
    for scenario in ["hand-over", "takeover", "many-waiters"] {
        let mut command = Command::new(optimized_xtask());
        command
            .args(["waiting", scenario, "--kubeconfig"])
            .arg(plane.admin_kubeconfig())
            .env_clear();
        run(&mut command)?;
    }
    Ok(())
}

/// Wait for locks with the library, and print how long it takes
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    scenario: Scenario,

    #[arg(long)]
    kubeconfig: PathBuf,
}

/// The scenarios for the clients. The nodes already exist.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Scenario {
    /// Pass one lock back and forth between two holders
    HandOver,
    /// Stop holders without a release, with one waiting client each
    Takeover,
    /// Let all clients wait for one lock, and release it as soon as they have it
    ManyWaiters,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start a runtime")?;
        runtime.block_on(async {
            let server = Server::read(&self.kubeconfig).await?;
            match self.scenario {
                Scenario::HandOver => hand_over::measure(&server, "hand-over", HAND_OVERS).await,
                Scenario::Takeover => takeover::measure(&server, "crash", CRASHES).await,
                Scenario::ManyWaiters => {
                    many_waiters::measure(&server, "many-waiters", WAITERS).await
                }
            }
        })
    }
}
