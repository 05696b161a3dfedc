//! `reference`: the whole help in one page, for docs/cli.md and for packagers. Not in the list of commands.

mod man;
mod markdown;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};

use crate::error::Failure;
use crate::exit::Code;
use crate::output::{print, schema};
use crate::run::session::Start;
use crate::words::hint_command::HEADING;

/// Print the reference of all commands and flags as Markdown
#[derive(Args, Clone, Debug)]
#[command(hide = true)]
pub(crate) struct ReferenceArgs {
    /// Write man pages to this directory instead, one per command
    #[arg(long, value_name = "DIR")]
    pub(crate) man: Option<PathBuf>,

    /// Print the JSON Schema of -o json instead
    #[arg(long, conflicts_with = "man")]
    pub(crate) schema: bool,
}

pub(crate) fn run(
    args: &ReferenceArgs,
    start: &Start<'_>,
    definition: Command,
) -> Result<Code, Failure> {
    if args.schema {
        start.terminal.data(print::json(&schema::schema())?);
        return Ok(Code::DONE);
    }
    // Each verb has a page of its own, so `help` needs none.
    let mut command = definition.disable_help_subcommand(true);
    command.build();
    match &args.man {
        None => start
            .terminal
            .data(markdown::markdown(&command, HEADING).trim_end()),
        Some(directory) => man::write_man_pages(&command, HEADING, directory)
            .with_context(|| format!("man pages in {}", directory.display()))?,
    }
    Ok(Code::DONE)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::markdown::{markdown, verbs};
    use super::*;
    use crate::app::Cli;

    #[test]
    fn every_verb_and_every_flag_that_is_not_hidden_is_on_the_page() {
        let mut command = Cli::command().bin_name("kubectl maint");
        command.build();
        let page = markdown(&command, HEADING);
        let all = verbs(&command).chain([&command]);
        for arg in all.flat_map(Command::get_arguments) {
            if let Some(long) = arg.get_long().filter(|_| !arg.is_hide_set())
                && !matches!(long, "help" | "version")
            {
                assert!(page.contains(&format!("`--{long}")), "--{long}");
            }
        }
        for verb in verbs(&command) {
            let heading = format!("\n## {}\n", verb.get_name());
            assert_eq!(page.matches(&heading).count(), 1, "{heading}");
        }
        assert!(!page.contains("reference"), "hidden");
    }

    #[test]
    fn flags_of_every_verb_stand_there_once() {
        let mut command = Cli::command().bin_name("kubectl maint");
        command.build();
        assert_eq!(
            markdown(&command, HEADING)
                .matches("`--kubeconfig FILE`")
                .count(),
            1
        );
    }
}
