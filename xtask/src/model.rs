//! `cargo xtask model`: explores more states of the protocol's model than the tests do.

use anyhow::Result;

use crate::cargo::{cargo, run};

/// The number of random cases for each property. The tests run 512, which are always the same.
const RANDOM_CASES: &str = "50000";

/// Check the protocol in all reachable states of small clusters
///
/// The bounds are larger than those of the tests. This checks some millions of states, takes minutes
/// and a few GB of memory, and prints the number of states of each cluster. It also runs the model on
/// random Leases, new ones each time.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let mut model = cargo(&["test", "--workspace", "--test", "model", "--"]);
        model.args(["--include-ignored", "--nocapture", "--test-threads=1"]);
        model.env("PROPTEST_CASES", RANDOM_CASES);
        run(&mut model)
    }
}
