//! `cargo xtask sim`: runs the library in seeded simulations with faults, with more seeds than the tests do.

use std::process::Command;

use anyhow::Result;
use control_plane::target_dir;

use crate::cargo::{build_like_tests, run};
use crate::seeded_bugs;

/// Run the library in many simulated clusters with faults, and check its guarantee
///
/// A seed determines everything: clients, clocks, network and faults. The same seed always gives the
/// same run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Number of seeds
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    seeds: u64,
    /// First seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// Run only this seed
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Print everything that happens
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Add known bugs to the library, one at a time, and print what finds each: the simulation or the model
    #[arg(long, conflicts_with_all = ["seeds", "from", "seed", "trace"])]
    bugs: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if self.bugs {
            return seeded_bugs::run();
        }
        build_like_tests(&["simulate"])?;
        let mut simulate = Command::new(target_dir().join("debug/simulate"));
        match self.seed {
            Some(seed) => {
                simulate.args(["--seed", &seed.to_string()]);
                if self.trace {
                    simulate.arg("--trace");
                }
            }
            None => {
                simulate.args(["--seeds", &self.seeds.to_string()]);
                simulate.args(["--from", &self.from.to_string()]);
            }
        }
        run(&mut simulate)
    }
}
