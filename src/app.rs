//! The command line, the list of commands, and how one of them is run.

pub(crate) mod usage_errors;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::args;
use crate::error::Failure;
use crate::exit::Code;
use crate::run::session::Start;
use crate::run::{parallel, problems};
use crate::words::program::{FILE, NAME};

use crate::args::connection::ConnectionArgs;
use crate::args::holder::HolderArgs;
use crate::commands;

/// One maintenance lock per node that everybody can see, wait for and respect
///
/// People and controllers disrupt nodes: they reboot, drain, snapshot and reprovision them. Each
/// node has one maintenance lock, the Node Maintenance Lease of KEP-1411: take it before you touch
/// the node, and give it back afterwards. It holds off nobody by force: what it does is to tell
/// everybody who asks that somebody is at work, who, since when, until when and why.
#[derive(Parser, Debug)]
#[command(
    name = FILE,
    bin_name = NAME,
    version,
    infer_long_args = false,
    subcommand_required = true,
    arg_required_else_help = true,
    propagate_version = false,
    max_term_width = 100,
    args_override_self = true,
    mut_subcommands(args::lock_id::on_verb)
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

/// Runs the verb that was typed, tells the problem that ended it, if any, and returns its code.
pub(crate) fn run(cli: &Cli, start: &Start<'_>) -> Code {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                tokio::select! {
                    biased;
                    result = verb(&cli.verb, start) => result,
                    () = parallel::LEAVING.notified() => {
                        start.terminal.warn(
                            "interrupted again: locks were not released, and a request may still take effect",
                        );
                        start.terminal.hint(format!("to see: {} status --mine", start.program));
                        Ok(Code::INTERRUPTED)
                    }
                }
            });
            // A name that is still being looked up must not keep it from its end. A credential plugin is ended.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Failure::input(format!("can't start: {error}"))),
    };
    let code = result.unwrap_or_else(|failure| {
        problems::tell(start.terminal, &failure, Some(start.program.asked()));
        Code::of(&failure, None)
    });
    start.terminal.code(code)
}

async fn verb(verb: &VerbArgs, start: &Start<'_>) -> Result<Code, Failure> {
    match verb {
        VerbArgs::Acquire(args) => commands::acquire::run(args, start).await,
        VerbArgs::Renew(args) => commands::renew::run(args, start).await,
        VerbArgs::Release(args) => commands::release::run(args, start).await,
        VerbArgs::Hold(args) => commands::hold::run(args, start).await,
        VerbArgs::Unhold(args) => commands::unhold::run(args, start).await,
        VerbArgs::Verify(args) => commands::verify::run(args, start).await,
        VerbArgs::Fence(args) => commands::fence::run(args, start).await,
        VerbArgs::Unfence(args) => commands::unfence::run(args, start).await,
        VerbArgs::With(args) => commands::with::run(args, start).await,
        VerbArgs::Status(args) => commands::status::run(args, start).await,
        VerbArgs::Leases(args) => {
            parallel::or_interrupted(commands::leases::run(args, start)).await
        }
        VerbArgs::Wait(args) => commands::wait::run(args, start).await,
        VerbArgs::ForceDelete(args) => commands::force_delete::run(args, start).await,
        VerbArgs::Version(args) => {
            parallel::or_interrupted(commands::version::run(args, start)).await
        }
        VerbArgs::Completion(args) => commands::completion::run(args, start),
        VerbArgs::Reference(args) => commands::reference::run(args, start, Cli::command()),
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
