//! `cargo xtask model`: the protocol's model in larger bounds than a test has time for.

use anyhow::Result;

use crate::cargo::{cargo, run};

/// Explore every state of the protocol in small worlds, in larger bounds than the tests do
///
/// The steps that ship wait, keep, break and lose a lock; clocks disagree, machines stand still, requests
/// arrive late. Some millions of states, in minutes and a few GB of memory; each world's number of
/// states is printed.
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
