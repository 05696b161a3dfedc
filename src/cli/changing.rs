//! What every verb takes that changes the locks of nodes.

use clap::Args;

use super::holder::HolderArgs;
use super::nodes::NodeArgs;
use super::output::OutputArgs;
use super::writing::WriteArgs;

/// Arguments of every verb that changes the locks of nodes.
#[derive(Args, Debug)]
pub(crate) struct ChangingArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
