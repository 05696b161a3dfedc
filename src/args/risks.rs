//! Risks that the operator accepts, as typed, and why.

use clap::{Args, ValueEnum};
use pod_safety::checks;
use pod_safety::consent::NONE;

use super::write::reason;

/// The present id of a risk that `typed` named in an earlier release.
pub(crate) fn current_risk(typed: &str) -> Option<&'static str> {
    match typed {
        "nothing" => Some(NONE),
        // Each thing that could not be read had its own.
        _ => typed.ends_with("-unknown").then_some(checks::UNREAD),
    }
}

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

    /// The earlier name of --accept-risk
    #[arg(
        long = "override",
        hide = true,
        value_name = "ID",
        value_enum,
        requires = "message"
    )]
    overridden: Vec<R>,
}

impl<R: ValueEnum + PartialEq + Send + Sync> RiskArgs<R> {
    /// Whether the operator accepts `risk`.
    pub(crate) fn accepts(&self, risk: &R) -> bool {
        self.accept_risk.contains(risk) || self.overridden.contains(risk)
    }
}
