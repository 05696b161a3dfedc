//! Arguments as typed, and what they mean.

pub(crate) mod acquisitions;
pub(crate) mod again;
pub(crate) mod called;
pub(crate) mod changing;
pub(crate) mod connection;
pub(crate) mod doubts;
pub(crate) mod duration;
pub(crate) mod holder;
pub(crate) mod hook;
pub(crate) mod misuse;
pub(crate) mod nodes;
pub(crate) mod output;
pub(crate) mod patience;
pub(crate) mod program;
pub(crate) mod token;
pub(crate) mod typed;
pub(crate) mod until;
pub(crate) mod writing;

use clap::{Parser, Subcommand};

use self::connection::ConnectionArgs;
use self::holder::HolderArgs;
use crate::commands;

/// One maintenance lock per node that everybody can see, wait for and respect
///
/// People and controllers disrupt nodes: they reboot, drain, snapshot and reprovision them. Each
/// node has one maintenance lock, the Node Maintenance Lease of KEP-1411: take it before you touch
/// the node, and give it back afterwards. It holds off nobody by force: what it does is to tell
/// everybody who asks that somebody is at work, who, since when, until when and why.
#[derive(Parser, Debug)]
#[command(
    version,
    infer_long_args = false,
    subcommand_required = true,
    arg_required_else_help = true,
    propagate_version = false,
    max_term_width = 100,
    args_override_self = true,
    mut_subcommands(token::on_verb)
)]
pub(crate) struct Cli {
    /// Read first, while the verb's own arguments are still there to be looked at.
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    #[command(subcommand)]
    pub(crate) verb: VerbArgs,
}

/// The verbs, in the order in which a maintenance meets them.
#[derive(Subcommand, Debug)]
pub(crate) enum VerbArgs {
    #[command(visible_alias = "lock")]
    Acquire(commands::acquire::AcquireArgs),
    Renew(commands::renew::RenewArgs),
    #[command(visible_alias = "unlock")]
    Release(commands::release::ReleaseArgs),
    Hold(commands::hold::HoldArgs),
    Unhold(commands::unhold::UnholdArgs),
    With(commands::with::WithArgs),
    Verify(commands::verify::VerifyArgs),
    Fence(commands::fence::FenceArgs),
    Unfence(commands::unfence::UnfenceArgs),
    Status(commands::status::StatusArgs),
    Wait(commands::wait::WaitArgs),
    Leases(commands::leases::LeasesArgs),
    ForceDelete(commands::force_delete::ForceDeleteArgs),
    Version(commands::version::VersionArgs),
    Completion(commands::completion::CompletionArgs),
    Reference(commands::reference::ReferenceArgs),
}

impl VerbArgs {
    /// Nothing but data and problems is to be printed.
    pub(crate) fn quiet(&self) -> bool {
        match self {
            Self::Acquire(args) => args.change.output.quiet,
            Self::Renew(args) => args.change.output.quiet,
            Self::Release(args) => args.change.output.quiet,
            Self::Hold(args) => args.change.output.quiet,
            Self::Unhold(args) => args.change.output.quiet,
            Self::With(args) => args.quiet,
            Self::Verify(args) => args.quiet,
            Self::Fence(args) => args.output.quiet,
            Self::Unfence(args) => args.output.quiet,
            Self::Status(args) => args.output.quiet,
            Self::Wait(args) => args.output.quiet,
            Self::Leases(args) => args.output.quiet,
            Self::ForceDelete(args) => args.output.quiet,
            Self::Version(_) | Self::Completion(_) | Self::Reference(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn examples_fit_a_terminal_of_80_columns() {
        let command = Cli::command();
        for verb in command.get_subcommands() {
            let examples = verb.get_after_help().map(ToString::to_string);
            for line in examples.unwrap_or_default().lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", verb.get_name());
            }
        }
    }
}
