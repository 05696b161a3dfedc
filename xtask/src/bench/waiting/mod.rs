//! Holders and waiters of the library, in a separate process: it is a release build, and does not affect the program
//! that runs the benchmark.

mod hand_over;
mod many_waiters;
mod server;
mod takeover;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use self::server::Server;
use super::command_cost::optimized_xtask;
use super::runtime::block_on;
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
        .chain([NodeSpec::ready("many-waiters")])
        .collect();
    plane.create_nodes(&nodes)?;
    measure_hand_over(plane)?;
    run_scenario(plane, "takeover")?;
    run_scenario(plane, "many-waiters")
}

/// Measures the time of a hand-over.
pub(super) fn measure_hand_over(plane: &ControlPlane) -> Result<()> {
    plane.create_nodes(&[NodeSpec::ready("hand-over")])?;
    run_scenario(plane, "hand-over")
}

fn run_scenario(plane: &ControlPlane, name: &str) -> Result<()> {
    let mut command = Command::new(optimized_xtask());
    command
        .args(["waiting", name, "--kubeconfig"])
        .arg(plane.admin_kubeconfig())
        .env_clear();
    run(&mut command)
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
        block_on(async {
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
