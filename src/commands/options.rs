//! `options`: the connection flags, which every command accepts and no other help lists.

use clap::{Arg, Args, Command};

use crate::error::Failure;
use crate::exit::Code;
use crate::run::session::Start;
use crate::words::hint_command::HEADING;

/// List the connection flags that every command accepts
///
/// You can give these flags before or after the command, but not before `maint`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint options
  kubectl maint status --context prod")]
pub(crate) struct OptionsArgs {}

/// Lists the flags of the command line's `definition`.
pub(crate) fn run(
    _: &OptionsArgs,
    start: &Start<'_>,
    definition: &Command,
) -> Result<Code, Failure> {
    let text = list(definition).render_help().ansi().to_string();
    start.terminal.data(text.trim_end());
    Ok(start.terminal.code(Code::DONE))
}

/// The connection flags of `definition`, as a command whose help is the list.
fn list(definition: &Command) -> Command {
    let flags: Vec<Arg> = definition
        .get_arguments()
        .filter(|arg| arg.get_help_heading() == Some(HEADING) && !arg.is_hide_set())
        .map(|arg| arg.clone().hide_short_help(false).next_line_help(true))
        .collect();
    Command::new("options")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .max_term_width(100)
        .help_template("The following options can be passed to any command:\n\n{options}")
        .args(flags)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    #[test]
    fn every_connection_flag_is_listed_with_its_meaning() {
        let text = list(&Cli::command()).render_help().to_string();
        for flag in [
            "-n, --namespace <NAMESPACE>",
            "--kubeconfig <FILE>",
            "--context <NAME>",
            "--holder <ID>",
            "--token <TOKEN>",
            "-v, --v <LEVEL>",
        ] {
            assert!(text.contains(flag), "{flag}: {text}");
        }
        assert!(text.contains("Bearer token"), "{text}");
        assert!(!text.contains("--help"), "{text}");
    }
}
