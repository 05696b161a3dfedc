//! `cargo xtask bench`: the plugin beside kubectl, waiting for and keeping locks by the library, and the
//! reports of force-delete, on a real control plane that writes to disk.

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

/// Measure the plugin beside kubectl, and what waiting, keeping locks and reports cost
///
/// Everything that is compared runs alternately, on the same real API server, whose etcd writes to
/// disk. A ratio of 0.1 means a tenth of what kubectl takes. Figures depend on the machine and are
/// printed, never asserted.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How often each command is run
    #[arg(long, value_name = "N", default_value_t = 20)]
    rounds: usize,

    /// How many nodes are acquired by label
    #[arg(long, value_name = "N", default_value_t = 500)]
    acquired: usize,

    /// How many nodes are acquired by label in a large cluster
    #[arg(long, value_name = "N", default_value_t = 15_000)]
    fleet: usize,

    /// How many nodes are listed
    #[arg(long, value_name = "N", default_value_t = 5000)]
    listed: usize,

    /// How often a lock is handed over
    #[arg(long, value_name = "N", default_value_t = 200)]
    hand_overs: usize,

    /// How many wait for one lock
    #[arg(long, value_name = "N", default_value_t = 200)]
    crowd: usize,

    /// How many locks one process keeps
    #[arg(long, value_name = "N", default_value_t = 1000)]
    kept: usize,

    /// How many pods the node has that is reported on
    #[arg(long, value_name = "N", default_value_t = 110)]
    pods: usize,

    /// Measure only this
    #[arg(long)]
    only: Option<Part>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Single commands, beside kubectl
    Commands,
    /// Acquiring and releasing the nodes of a large cluster
    Fleet,
    /// Waiting for a lock
    Waiting,
    /// Keeping locks
    Keeping,
    /// Reports before a forced deletion
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
