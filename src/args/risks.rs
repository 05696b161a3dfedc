//! Risks that the operator accepts, as typed, and why.

use clap::{Args, ValueEnum};

use super::write::reason;

/// Flags of the verbs that refuse risks: `R` are those that can be accepted.
#[derive(Args, Debug)]
pub(crate) struct RiskArgs<R: ValueEnum + Send + Sync + 'static> {
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
    accept_risk: Vec<R>,
}

impl<R: ValueEnum + PartialEq + Send + Sync> RiskArgs<R> {
    /// Whether the operator accepts `risk`.
    pub(crate) fn accepts(&self, risk: &R) -> bool {
        self.accept_risk.contains(risk)
    }
}
