//! Doubts that an operator may know better about, as typed, and why.

use clap::{Args, ValueEnum};

use super::write::reason;

/// Flags of the verbs that refuse what is in doubt: `D` are the doubts that can be overridden.
#[derive(Args, Debug)]
pub(crate) struct DoubtArgs<D: ValueEnum + Send + Sync + 'static> {
    /// Reason, recorded on the node
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Continue even if this check refuses; requires -m
    #[arg(long = "override", value_name = "ID", value_enum, requires = "message")]
    insist: Vec<D>,
}

impl<D: ValueEnum + PartialEq + Send + Sync> DoubtArgs<D> {
    /// Whether it is to go on against `doubt`.
    pub(crate) fn insists(&self, doubt: &D) -> bool {
        self.insist.contains(doubt)
    }
}
