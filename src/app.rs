//! The command line, the list of commands, and how one of them is run.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};
use futures::future::{LocalBoxFuture, ready};

use crate::commands;
use crate::error::Failure;
use crate::exit::Code;
use crate::run::interruption::or_interrupted;
use crate::run::session::Start;
use crate::run::{interruption, problems};
use crate::words::hint_command::{FILE, NAME};

use crate::args::connection::ConnectionArgs;
use crate::args::default_holder::HolderArgs;

/// Lock nodes for maintenance: one lock per node that everybody can see
///
/// Acquire the lock of a node before you reboot, drain or repair it, and release it when you are done.
/// Others can see who holds the lock, since when, until when and why. The lock is a Lease: the Node
/// Maintenance Lease of KEP-1411.
///
/// A lock does not cordon or drain the node. Tools that ignore the lock are not blocked.
#[derive(Parser, Debug)]
#[command(
    name = FILE,
    bin_name = NAME,
    version,
    infer_long_args = false,
    subcommand_required = true,
    propagate_version = false,
    max_term_width = 80,
    args_override_self = true,
    after_help = format!("{FIRST_STEPS}\n{SEE_HELP}\n{SEE_OPTIONS}"),
    after_long_help = format!("{FIRST_STEPS}\n\nDocumentation: {DOCS}\n\n{SEE_HELP}\n{SEE_OPTIONS}")
)]
struct Root {
    /// Read first, while the verb's own arguments are still there to be looked at.
    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(flatten)]
    holder: HolderArgs,
}

/// The command line as typed.
#[derive(Debug)]
pub(crate) struct Cli {
    pub(crate) connection: ConnectionArgs,
    pub(crate) holder: HolderArgs,
    pub(crate) verb: VerbArgs,
    /// Whether to print only data and problems.
    pub(crate) quiet: bool,
}

impl Cli {
    /// The command line with those commands alone that `line` may name: to build them all takes longer than
    /// most requests.
    pub(crate) fn command_for(line: &[OsString]) -> Command {
        with_verbs(|names| {
            names
                .iter()
                .any(|name| line.iter().any(|word| word == name))
        })
    }
}

impl CommandFactory for Cli {
    fn command() -> Command {
        with_verbs(|_| true)
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

impl FromArgMatches for Cli {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Root { connection, holder } = Root::from_arg_matches(matches)?;
        let verb = matches.subcommand();
        let quiet = verb.and_then(|(_, matches)| matches.try_get_one("quiet").ok().flatten());
        Ok(Self {
            connection,
            holder,
            verb: VerbArgs::from_arg_matches(matches)?,
            quiet: quiet.copied().unwrap_or(false),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Parser for Cli {}

/// The root, and the verbs whose names `are_meant`.
fn with_verbs(are_meant: impl Fn(&[&str]) -> bool) -> Command {
    let verbs = VERBS.iter().filter(|(names, _)| are_meant(names));
    let verbs = verbs.map(|(names, arguments)| {
        let verb = Command::new(names[0]).visible_aliases(names[1..].iter().copied());
        // If a flag is given twice, the last one counts, as in kubectl.
        names_options(arguments(verb).args_override_self(true))
    });
    Root::command().subcommands(verbs)
}

const FIRST_STEPS: &str = "An administrator runs `install` once. Check your rights with `doctor`.";

const SEE_HELP: &str =
    "Use \"kubectl maint <command> --help\" for more information about a command.";

/// The pages that help texts name as docs/PAGE.md.
const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs");

/// The last line of every command's help.
pub(crate) const SEE_OPTIONS: &str =
    "Use \"kubectl maint options\" for a list of connection flags that every command accepts.";

/// Ends the help of `command` with [`SEE_OPTIONS`].
fn names_options(command: Command) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let examples = examples.map(|examples| examples + "\n\n");
    command.after_help(examples.unwrap_or_default() + SEE_OPTIONS)
}

/// Lists the verbs: the names that can be typed, and the type of the arguments.
macro_rules! verbs {
    ($($names:expr => $verb:ident($arguments:ty),)*) => {
        /// A verb and its arguments.
        #[derive(Debug)]
        pub(crate) enum VerbArgs {
            $($verb($arguments),)*
        }

        /// The name of each verb, its aliases, and what adds its arguments.
        const VERBS: &[(&[&str], fn(Command) -> Command)] =
            &[$((&$names, <$arguments>::augment_args),)*];

        impl VerbArgs {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                let typed = matches.subcommand();
                $(if let Some((_, matches)) = typed.filter(|(name, _)| *name == $names[0]) {
                    return <$arguments>::from_arg_matches(matches).map(Self::$verb);
                })*
                Err(clap::Error::new(ErrorKind::MissingSubcommand))
            }
        }
    };
}

// In the order in which a maintenance meets them.
verbs! {
    ["acquire", "lock"] => Acquire(commands::acquire::AcquireArgs),
    ["renew"] => Renew(commands::renew::RenewArgs),
    ["release", "unlock"] => Release(commands::release::ReleaseArgs),
    ["hold"] => Hold(commands::hold::HoldArgs),
    ["unhold"] => Unhold(commands::unhold::UnholdArgs),
    ["with"] => With(commands::with::WithArgs),
    ["verify"] => Verify(commands::verify::VerifyArgs),
    ["fence"] => Fence(commands::fence::FenceArgs),
    ["unfence"] => Unfence(commands::unfence::UnfenceArgs),
    ["status"] => Status(commands::status::StatusArgs),
    ["describe"] => Describe(commands::describe::DescribeArgs),
    ["history"] => History(commands::history::HistoryArgs),
    ["wait"] => Wait(commands::wait::WaitArgs),
    ["leases"] => Leases(commands::leases::LeasesArgs),
    ["why"] => Why(commands::why::WhyArgs),
    ["force-delete"] => ForceDelete(commands::force_delete::ForceDeleteArgs),
    ["doctor"] => Doctor(commands::doctor::DoctorArgs),
    ["install"] => Install(commands::install::InstallArgs),
    ["enforce"] => Enforce(commands::enforce::EnforceArgs),
    ["uninstall"] => Uninstall(commands::uninstall::UninstallArgs),
    ["options"] => Options(commands::options::OptionsArgs),
    ["version"] => Version(commands::version::VersionArgs),
    ["completion"] => Completion(commands::completion::CompletionArgs),
    ["reference"] => Reference(commands::reference::ReferenceArgs),
}

/// Runs the typed command, reports its failure, if any, and returns its exit code.
pub(crate) fn run(cli: &Cli, start: &Start<'_>) -> Code {
    // Boxed one by one: all of them together would reserve, and copy, as much memory as the largest one.
    let command: LocalBoxFuture<'_, Result<Code, Failure>> = match &cli.verb {
        VerbArgs::Acquire(args) => Box::pin(commands::acquire::run(args, start)),
        VerbArgs::Renew(args) => Box::pin(commands::renew::run(args, start)),
        VerbArgs::Release(args) => Box::pin(commands::release::run(args, start)),
        VerbArgs::Hold(args) => Box::pin(commands::hold::run(args, start)),
        VerbArgs::Unhold(args) => Box::pin(commands::unhold::run(args, start)),
        VerbArgs::Verify(args) => Box::pin(commands::verify::run(args, start)),
        VerbArgs::Fence(args) => Box::pin(commands::fence::run(args, start)),
        VerbArgs::Unfence(args) => Box::pin(commands::unfence::run(args, start)),
        VerbArgs::With(args) => Box::pin(commands::with::run(args, start)),
        VerbArgs::Status(args) => Box::pin(commands::status::run(args, start)),
        VerbArgs::Describe(args) => Box::pin(commands::describe::run(args, start)),
        VerbArgs::Leases(args) => Box::pin(or_interrupted(commands::leases::run(args, start))),
        VerbArgs::History(args) => Box::pin(or_interrupted(commands::history::run(args, start))),
        VerbArgs::Wait(args) => Box::pin(commands::wait::run(args, start)),
        VerbArgs::Why(args) => Box::pin(or_interrupted(commands::why::run(args, start))),
        VerbArgs::ForceDelete(args) => Box::pin(commands::force_delete::run(args, start)),
        VerbArgs::Doctor(args) => Box::pin(or_interrupted(commands::doctor::run(args, start))),
        VerbArgs::Install(args) => Box::pin(or_interrupted(commands::install::run(args, start))),
        VerbArgs::Enforce(args) => Box::pin(or_interrupted(commands::enforce::run(args, start))),
        VerbArgs::Uninstall(args) => {
            Box::pin(or_interrupted(commands::uninstall::run(args, start)))
        }
        VerbArgs::Options(args) => {
            Box::pin(ready(commands::options::run(args, start, &Cli::command())))
        }
        VerbArgs::Version(args) => Box::pin(or_interrupted(commands::version::run(args, start))),
        VerbArgs::Completion(args) => Box::pin(ready(commands::completion::run(args, start))),
        VerbArgs::Reference(args) => {
            Box::pin(ready(commands::reference::run(args, start, Cli::command())))
        }
    };
    let code = interruption::run(command).unwrap_or_else(|failure| {
        problems::report(start.terminal, start.program, &failure);
        Code::of(&failure, None)
    });
    start.terminal.code(code)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, CommandFactory as _};

    use super::{Cli, SEE_OPTIONS};
    use crate::words::hint_command::HEADING;

    fn built() -> Command {
        let mut command = Cli::command();
        command.build();
        command
    }

    /// The commands that the help lists.
    fn listed(command: &Command) -> impl Iterator<Item = Command> {
        let commands = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        commands
            .filter(|command| command.get_name() != "help")
            .cloned()
    }

    #[test]
    fn examples_are_few_and_fit_80_columns() {
        for command in listed(&built()) {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let Some((examples, _)) = help.split_once("\n\n") else {
                continue;
            };
            for line in examples.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
            let begin = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
            assert!(
                examples.lines().filter(begin).count() <= 5,
                "{name}: {examples}"
            );
        }
    }

    #[test]
    fn the_short_help_fits_one_screen() {
        let all = built();
        for command in listed(&all).chain([all.clone()]) {
            let help = command.term_width(80).render_help().to_string();
            assert!(help.lines().count() <= 40, "{help}");
        }
    }

    #[test]
    fn the_long_help_has_at_most_three_short_paragraphs_before_the_flags() {
        let all = built();
        for command in listed(&all).chain([all.clone()]) {
            let about = command.get_long_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let paragraphs = about.split("\n\n").filter(|text| !text.starts_with("  "));
            assert!(paragraphs.clone().count() <= 4, "{about}");
            for paragraph in paragraphs {
                assert!(paragraph.split_whitespace().count() <= 60, "{paragraph}");
            }
        }
    }

    #[test]
    fn connection_flags_are_listed_by_options_alone() {
        let last = SEE_OPTIONS.split(' ').collect::<Vec<_>>();
        let all = built();
        let of_connection = |arg: &&Arg| arg.get_help_heading() == Some(HEADING);
        assert!(all.get_arguments().filter(of_connection).count() > 15);
        for mut command in listed(&all).chain([all.clone()]) {
            for help in [command.render_help(), command.render_long_help()] {
                let help = help.to_string();
                assert!(!help.contains("--kubeconfig"), "{help}");
                assert!(!help.contains(HEADING), "{help}");
                let words: Vec<_> = help.split_whitespace().collect();
                assert!(words.ends_with(&last), "{help}");
            }
        }
    }
}
