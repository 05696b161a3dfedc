//! `cargo xtask model`: explores the protocol's model in larger bounds than the tests do.

use anyhow::Result;

use crate::cargo::{cargo, run};

/// Check the protocol in all reachable states of small clusters
///
/// The bounds are larger than those of the tests. This checks some millions of states, takes minutes
/// and a few GB of memory, and prints the number of states of each cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let mut model = cargo(&[
            "test",
            "--profile",
            "simulation",
            "--package",
            "maintenance-lease",
        ]);
        model.args(["--test", "model", "exhaustive", "--"]).args([
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
        ]);
        run(&mut model)
    }
}
