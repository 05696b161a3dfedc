//! Man pages, one per command.

use std::io;
use std::path::Path;

use clap::Command;

use super::markdown::{is_shared, verbs};

/// Writes the page of the program and one page for each listed command to `directory`. The flags under the heading `shared`
/// are those of all commands: only the page of the program has them.
///
/// # Errors
/// If a file can't be written.
pub(super) fn write_man_pages(command: &Command, shared: &str, directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for page in std::iter::once(command).chain(verbs(command)) {
        let page = for_man(page.clone(), shared);
        // Without a date, every build makes the same pages.
        let page = clap_mangen::Man::new(page)
            .date("")
            .manual("kubectl plugins");
        page.generate_to(directory)?;
    }
    Ok(())
}

/// A command for a man page. A flag without a long help keeps its short help.
fn for_man(command: Command, shared: &str) -> Command {
    let is_verb = !command.has_subcommands();
    command.mut_args(|arg| {
        let hidden = arg.is_hide_set() || (is_verb && is_shared(&arg, shared));
        arg.hide(hidden)
            .hide_short_help(false)
            .hide_long_help(false)
    })
}
