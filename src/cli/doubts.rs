//! Doubts that an operator may know better about, as typed, and why.

use clap::{Args, ValueEnum};

use super::writing::reason;
use crate::terminal::Terminal;

/// That `old` is an earlier name of --accept-risk.
pub(crate) fn renamed(old: &str) -> String {
    format!(
        "{old} was renamed to --accept-risk; the old name will stop working in the next release"
    )
}

/// Flags of the verbs that refuse what is in doubt: `D` are the doubts that can be overridden.
#[derive(Args, Debug)]
pub(crate) struct DoubtArgs<D: ValueEnum + Send + Sync + 'static> {
    /// Why, for everybody who looks at the node later
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Accept this risk, for the reason in -m
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        value_enum,
        requires = "message"
    )]
    accept_risk: Vec<D>,

    /// The earlier name of --accept-risk
    #[arg(
        long = "override",
        hide = true,
        value_name = "ID",
        value_enum,
        requires = "message"
    )]
    overridden: Vec<D>,
}

impl<D: ValueEnum + PartialEq + Send + Sync> DoubtArgs<D> {
    /// Whether it is to go on against `doubt`.
    pub(crate) fn insists(&self, doubt: &D) -> bool {
        self.accept_risk.contains(doubt) || self.overridden.contains(doubt)
    }

    /// Warns if the risk was accepted by the earlier name of the flag.
    pub(crate) fn warn_of_old_name(&self, terminal: &Terminal) {
        if !self.overridden.is_empty() {
            terminal.warn(renamed("--override"));
        }
    }
}
