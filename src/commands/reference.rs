//! `reference`: the whole help in one page, for docs/cli.md and for packagers. Not in the list of commands.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command};

use crate::error::Failure;
use crate::exit::Code;
use crate::output::{print, reference, schema};
use crate::run::session::Start;

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
            .data(reference::markdown(&command).trim_end()),
        Some(directory) => pages(&command, directory)
            .with_context(|| format!("man pages in {}", directory.display()))?,
    }
    Ok(Code::DONE)
}

/// Writes the page of the command and one page for each listed verb.
fn pages(command: &Command, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for page in std::iter::once(command).chain(reference::verbs(command)) {
        let page = reference::for_man(page.clone());
        // Without a date, every build makes the same pages.
        let page = clap_mangen::Man::new(page)
            .date("")
            .manual("kubectl plugins");
        page.generate_to(directory)?;
    }
    Ok(())
}
