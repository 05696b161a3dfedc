//! What `fence` and `unfence` have in common, as typed.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration;
use super::hook::HookArgs;
use super::nodes::single_node;
use super::output::OutputArgs;
use super::risks::RiskArgs;
use super::write::WriteArgs;
use crate::error::InputError;

/// The node, its hook, and the risks `R` that can be accepted.
#[derive(Args, Debug)]
pub(crate) struct FencingArgs<R: ValueEnum + Send + Sync + 'static> {
    /// Node name, as NAME or node/NAME
    #[arg(index = 1, value_name = "NODE")]
    node: String,

    #[command(flatten)]
    pub(crate) risks: RiskArgs<R>,

    #[command(flatten)]
    pub(crate) hook: HookArgs,

    /// Stop waiting after this long
    ///
    /// The exit code is then 4. 0 checks once.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        value_parser = duration::length
    )]
    pub(crate) timeout: Duration,

    /// Answer yes to the confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl<R: ValueEnum + Send + Sync> FencingArgs<R> {
    /// The name of the node.
    ///
    /// # Errors
    /// If it is not valid for a node.
    pub(crate) fn node(&self) -> Result<String, InputError> {
        single_node(&self.node)
    }
}
