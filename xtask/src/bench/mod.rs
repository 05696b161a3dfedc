//! `cargo xtask bench`: compares the plugin with kubectl, and measures waiting for locks, keeping them, and
//! the reports of force-delete. It runs on a real control plane that writes to disk.

mod figures;
mod keeping;
pub(crate) mod load;
pub(crate) mod measure;
mod metrics;
mod nodes;
mod process;
mod raw;
mod reports;
mod scenarios;
mod waiting;

use anyhow::{Context as _, Result};
use control_plane::{Binary, ControlPlane};

use self::measure::Tools;
use crate::cargo::{cargo, run_build};
use crate::control_plane::ensure_built;
use crate::say::say;

/// Measure the plugin against kubectl, and the cost of waiting, renewing and reports
///
/// Compared commands run alternately on the same real API server, and etcd writes to disk. A ratio of
/// 0.1 means a tenth of what kubectl needs. The results depend on the machine: they are printed, not
/// checked.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Number of runs per command
    #[arg(long, value_name = "N", default_value_t = 20)]
    rounds: usize,

    /// Number of nodes to acquire by label
    #[arg(long, value_name = "N", default_value_t = 500)]
    acquired: usize,

    /// Number of nodes to acquire by label in a large cluster
    #[arg(long, value_name = "N", default_value_t = 15_000)]
    fleet: usize,

    /// Number of nodes to list
    #[arg(long, value_name = "N", default_value_t = 5000)]
    listed: usize,

    /// Number of times that a lock changes its holder
    #[arg(long, value_name = "N", default_value_t = 200)]
    hand_overs: usize,

    /// Number of clients that wait for one lock
    #[arg(long, value_name = "N", default_value_t = 200)]
    crowd: usize,

    /// Number of locks that one process renews
    #[arg(long, value_name = "N", default_value_t = 1000)]
    kept: usize,

    /// Number of pods on the node of the force-delete report
    #[arg(long, value_name = "N", default_value_t = 110)]
    pods: usize,

    /// Measure only this
    #[arg(long)]
    only: Option<Part>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Single commands, compared with kubectl
    Commands,
    /// Acquire and release the nodes of a large cluster
    Fleet,
    /// Wait for a lock
    Waiting,
    /// Renew locks
    Keeping,
    /// Reports of force-delete
    Reports,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        let packages = ["--package=kubectl-maint", "--package=xtask"];
        let mut build = cargo(&["build", "--release"]);
        run_build("for release", build.args(packages))?;
        say("starting a control plane that writes to disk");
        let plane = ControlPlane::builder()
            .controller_manager(false)
            .fsync(true)
            .start()?;
        let is_wanted = |part| self.only.is_none_or(|only| only == part);
        if is_wanted(Part::Commands) {
            self.commands(&plane)?;
        }
        if is_wanted(Part::Waiting) {
            waiting::library(&plane, self.hand_overs, self.crowd)?;
            waiting::commands(&plane, &Tools::new(&plane)?, self.hand_overs / 4)?;
        }
        if is_wanted(Part::Keeping) {
            keeping::keepers(&plane, self.kept)?;
            keeping::with(&plane, &Tools::new(&plane)?)?;
        }
        if is_wanted(Part::Reports) {
            reports::of_a_node(&plane, &Tools::new(&plane)?, self.pods, self.rounds)?;
        }
        if is_wanted(Part::Fleet) {
            let tools = Tools::new(&plane)?;
            scenarios::rates(&plane, &tools, &runtime()?, "fleet", self.fleet, 3)?;
        }
        Ok(())
    }

    fn commands(&self, plane: &ControlPlane) -> Result<()> {
        let tools = Tools::new(plane)?;
        let runtime = runtime()?;
        scenarios::one_node(plane, &tools, self.rounds)?;
        scenarios::by_label(plane, &tools, &runtime, self.acquired)?;
        scenarios::wide(plane, &tools, self.listed)?;
        metrics::requests(plane, &tools)
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("failed to start a runtime")
}
