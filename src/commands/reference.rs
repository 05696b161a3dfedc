//! `reference`: the whole help at once, for docs/cli.md and for packagers. Not in the list of commands.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::called;
use crate::exit::Code;
use crate::failure::Failure;
use crate::reference;
use crate::session::Start;

/// Print the reference of all commands and flags as Markdown
#[derive(Args, Clone, Debug)]
#[command(hide = true)]
pub(crate) struct ReferenceArgs {
    /// Write man pages to this directory instead, one per command
    #[arg(long, value_name = "DIR")]
    pub(crate) man: Option<PathBuf>,
}

pub(crate) fn run(args: &ReferenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    // Help on a verb is that verb's own page.
    let mut command = called::definition(start.program.name()).disable_help_subcommand(true);
    command.build();
    match &args.man {
        None => start
            .terminal
            .data(reference::markdown(&command).trim_end()),
        Some(directory) => pages(&command, directory).map_err(|error| {
            Failure::input(format!("man pages in {}: {error}", directory.display()))
        })?,
    }
    Ok(Code::DONE)
}

/// Writes the page of the command and one for each verb that is listed.
fn pages(command: &clap::Command, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for page in std::iter::once(command).chain(reference::verbs(command)) {
        let page = reference::for_man(page.clone());
        // The date of the build would make every build's pages different.
        let page = clap_mangen::Man::new(page)
            .date("")
            .manual("kubectl plugins");
        page.generate_to(directory)?;
    }
    Ok(())
}
