//! What every verb takes that changes the locks of nodes.

use clap::Args;

use super::nodes::NodeArgs;
use super::nodes::Selection;
use super::output::Format;
use super::output::OutputArgs;
use super::writing::{DryRunMode, WriteArgs};
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Arguments of every verb that changes the locks of nodes.
#[derive(Args, Debug)]
pub(crate) struct ChangingArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    /// Answer yes to all confirmations
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl ChangingArgs {
    /// The nodes that are meant; `mine` is the verb's own flag, `None` where it has none.
    ///
    /// # Errors
    /// Where they are named in a way that can't be meant, or the token of a dry run is wanted.
    pub(crate) fn selection(
        &self,
        mine: Option<bool>,
        terminal: &Terminal,
    ) -> Result<Selection, Failure> {
        if self.write.dry_run != DryRunMode::None && self.output.format() == Format::Token {
            return Err(Failure::usage(
                "a dry run acquires nothing, so that there is no token for -o token",
                "do without one of them",
            ));
        }
        self.nodes.selection(mine, terminal.stdin())
    }
}
