//! `cargo xtask model`: the protocol's model in larger bounds than a test has time for.

use anyhow::Result;

use crate::cargo::{cargo, run};

/// Explore every state of the protocol in a small world, for longer than the tests do
///
/// Two users and an administrator, locks that are broken, requests that arrive late: with two of
/// them under way at once that is some millions of states, in minutes and a few GB of memory.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many requests may be under way at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    in_flight: usize,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let mut model = cargo(&["test", "--release", "--package", "maintenance-lease"]);
        model
            .args(["--test", "model", "exhaustive", "--", "--nocapture"])
            .env("MODEL_IN_FLIGHT", self.in_flight.to_string());
        run(&mut model)
    }
}
