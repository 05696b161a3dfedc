//! Risks that the operator accepts, as typed, and why.

use clap::{Args, ValueEnum};

use super::write::reason;

/// Flags of the verbs that refuse what is in doubt: `D` are the doubts that can be overridden.
#[derive(Args, Debug)]
pub(crate) struct RiskArgs<D: ValueEnum + Send + Sync + 'static> {
    /// Reason, recorded on the node
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

impl<D: ValueEnum + PartialEq + Send + Sync> RiskArgs<D> {
    /// Whether the operator accepts `doubt`.
    pub(crate) fn insists(&self, doubt: &D) -> bool {
        self.accept_risk.contains(doubt) || self.overridden.contains(doubt)
    }
}
