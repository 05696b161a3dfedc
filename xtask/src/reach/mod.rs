//! Proves with the programs of other projects what a hold prevents.

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use control_plane::Binary;

use self::subject::Subject;
use crate::cargo::build_plugin;
use crate::control_plane::ensure_built;
use crate::output::print;

mod descheduler;
mod drain;
mod fluo;
mod karpenter;
mod node_health_check;
mod program;
mod subject;

const SUBJECTS: [&Subject; 6] = [
    &drain::WITHOUT_POLICIES,
    &drain::REFUSED,
    &node_health_check::REMEDIATION,
    &fluo::REBOOT,
    &descheduler::EVICTION,
    &karpenter::EMPTINESS,
];

/// Prove what a hold keeps other tools from
///
/// Runs the programs of other projects on a real control plane. Each tool tries to disrupt two nodes, and one of them
/// is on hold. The tool must disrupt only the other node at first, and the node on hold after `unhold`. `kubectl drain`
/// must disrupt both, because a hold does not stop it. The first run compiles the tools, which takes about 15 minutes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run only these tools (default: all)
    #[arg(value_name = "SUBJECT", value_parser = names())]
    only: Vec<String>,
}

fn names() -> PossibleValuesParser {
    SUBJECTS.map(|subject| subject.name).into()
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        build_plugin()?;
        ensure_built(&Binary::CONTROL_PLANE)?;
        let is_wanted = |subject: &&&Subject| {
            self.only.is_empty() || self.only.iter().any(|name| name == subject.name)
        };
        let mut rows = Vec::new();
        for subject in SUBJECTS.iter().filter(is_wanted) {
            ensure_built(&[subject.binary])?;
            rows.push(subject.prove().context(subject.name)?);
        }
        print(format_args!(
            "\n| tool | what it does | disrupts the other node | disrupts the node on hold | disrupts it after `unhold` |\n{}",
            "| --- ".repeat(5) + "|"
        ));
        for row in rows {
            print(row);
        }
        Ok(())
    }
}
