//! The arguments of every verb that changes the locks of nodes.

use clap::Args;

use super::nodes::{NodeArgs, Selection};
use super::output::OutputArgs;
use super::write::WriteArgs;
use crate::error::Failure;
use crate::ui::Terminal;

/// Arguments of every verb that changes the locks of nodes.
#[derive(Args, Debug)]
pub(crate) struct ChangingArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    /// Answer yes to confirmations
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl ChangingArgs {
    /// The selected nodes; `mine` is the verb's own flag, `None` if it has none.
    ///
    /// # Errors
    /// If the selection is invalid, or if the lock id of a dry run is requested.
    pub(crate) fn selection(
        &self,
        mine: Option<bool>,
        terminal: &Terminal,
    ) -> Result<Selection, Failure> {
        if self.write.is_dry_run() {
            self.output.without_lock_ids("--dry-run")?;
        }
        self.nodes.selection(mine, terminal.stdin())
    }
}
