//! `cargo xtask bench`: the plugin beside kubectl, on a real control plane that writes to disk.

pub(crate) mod measure;
mod metrics;
mod scenarios;

use anyhow::{Context as _, Result};
use control_plane::{Binary, ControlPlane};

use self::measure::Tools;
use crate::cargo::{cargo, run};
use crate::control_plane::ensure_built;
use crate::say::say;

/// Measure the plugin beside kubectl, and print ratios from one run
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

    /// How many nodes are listed
    #[arg(long, value_name = "N", default_value_t = 5000)]
    listed: usize,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        ensure_built(&Binary::ALL)?;
        say("building the plugin for release");
        run(&mut cargo(&[
            "build",
            "--release",
            "--package",
            "kubectl-maint",
        ]))?;
        say("starting a control plane that writes to disk");
        let plane = ControlPlane::builder()
            .controller_manager(false)
            .fsync(true)
            .start()?;
        let tools = Tools::new(&plane)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("failed to start a runtime")?;

        scenarios::one_node(&plane, &tools, self.rounds)?;
        scenarios::by_label(&plane, &tools, &runtime, self.acquired)?;
        scenarios::wide(&plane, &tools, self.listed)?;
        metrics::requests(&plane, &tools)
    }
}
